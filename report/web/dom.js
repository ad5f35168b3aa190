// A few lines in place of a framework.

/** element("p", {class: "note", title}, "text", child): attributes that are functions are event handlers. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** A labelled choice: options are [value, text] pairs. */
export function choice(label, options, chosen, onChange) {
  const select = element("select", { change: () => onChange(select.value) },
    ...options.map(([value, text]) => element("option", { value, selected: value === chosen }, text)));
  return element("label", { class: "choice" }, element("span", {}, label), select);
}

export function table(head, rows, attributes = {}) {
  const isNumber = (column) => rows.length > 0 && rows.every((row) => /^[<>−]? ?[\d–]/.test(row[column]?.textContent ?? row[column]));
  const cell = (tag) => (value, column) => element(tag, { class: column > 0 && isNumber(column) ? "number" : undefined }, value);
  return element("div", { class: "scroll" }, element("table", attributes,
    element("thead", {}, element("tr", {}, ...head.map(cell("th")))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(cell("td")))))));
}

export const note = (text) => element("p", { class: "note" }, text);
