// Groups of tiles that the map outlines: those of a plan axis, pipeline stages, replicas.

/** By name: {name, of(row)}; rows with equal values belong to one group. */
export function groupings(run) {
  const all = {};
  for (const axis of run.axes) {
    // Members of a group differ in their rank along the axis only.
    const others = run.axes.filter((other) => other !== axis);
    const of = run.tiles.id.map((_, row) => others.map((other) => run.ranks[other][row]).join(","));
    all[axis] = { name: `${axis} groups`, of: (row) => of[row] };
  }
  const stages = run.summary.plan.pp;
  const replicas = new Set(run.tiles.group.map((group) => Math.floor(group / stages))).size;
  if (stages > 1) all.stages = { name: "pipeline stages", of: (row) => run.tiles.group[row] };
  if (run.wafers > 1) all.wafers = { name: "wafers", of: (row) => run.waferOf(run.tiles.id[row]) };
  if (replicas > 1) all.replicas = { name: "replicas", of: (row) => Math.floor(run.tiles.group[row] / stages) };
  for (const grouping of Object.values(all)) grouping.scattered = isScattered(run, grouping);
  return all;
}

/** No two neighbours belong together, so that outlines would tell nothing. */
function isScattered(run, grouping) {
  return run.tiles.id.every((id, row) => [1, run.mesh.cols].every((step) => {
    const other = step === 1 && id % run.mesh.cols === run.mesh.cols - 1 ? undefined : run.tileAt.get(id + step);
    return other === undefined || grouping.of(other) !== grouping.of(row);
  }));
}

/** The tiles that belong together with that of `row`. */
export const membersOf = (run, grouping, row) => run.tiles.id.filter((_, other) => grouping.of(other) === grouping.of(row));
