#!/usr/bin/env python3
"""A cost model in forty lines: matrix work at the peak, and the bubble of the pipeline.

Reads a resolved scenario as JSON on standard input and prints the cycles of an iteration. `wafersim validate` runs it once for
each point of a study; the number of the point is in the environment variable WAFERSIM_POINT.
"""

import json
import re
import sys


def number(text: str) -> float:
    """The number at the start of a quantity such as '256 GB/s'."""
    return float(re.match(r"[0-9.e+]+", str(text)).group())


def rows_cols(shape: str) -> int:
    rows, cols = shape.split("x")
    return int(rows) * int(cols)


def main() -> None:
    scenario = json.load(sys.stdin)
    model, training, plan = scenario["model"], scenario["training"], scenario["plan"]
    matrix = scenario["wafer"]["compute"]["matrix"]
    flops_per_cycle = 2 * rows_cols(matrix["shape"]) * int(matrix.get("arrays", 1))

    hidden, sequence = model["hidden"], model["sequence"]
    head_dim = model.get("head_dim") or hidden // model["heads"]
    kv_width = model["kv_heads"] * head_dim
    layer = hidden * (2 * model["heads"] * head_dim + 2 * kv_width) + 2 * model["heads"] * head_dim * sequence
    layer += (3 if model["mlp"] == "swiglu" else 2) * hidden * model["ffn"]
    macs = model["layers"] * layer + (hidden * model["vocab"] if model["head"] else 0)
    tokens = training["global_batch"] * sequence
    passes = 4 if training["recompute"]["kind"] == "full" else 3

    own_sp = plan["sp"]["degree"] if plan["sp"]["kind"] in ("ulysses", "ring") else 1
    tiles = plan["dp"] * plan["tp"] * plan["tatp"]["degree"] * plan["pp"] * own_sp
    microbatches = training["global_batch"] // (plan["dp"] * training["microbatch"])
    bubble = (microbatches + plan["pp"] - 1) / microbatches
    print(2 * macs * tokens * passes / tiles / flops_per_cycle * bubble)


main()
