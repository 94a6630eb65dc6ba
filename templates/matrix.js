"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const panel = document.getElementById("cell");
  const grid = document.querySelector("table");
  const shown = new Set(data.severities);
  let language = document.documentElement.lang.startsWith("zh") ? "zh" : "en";
  let open = null;

  const words = () => data.words[language];
  /** `{count} {count:file|files}`, by gaps: the number, and the word for it. */
  const fill = (template, gaps) =>
    template.replace(/\{(\w+)(?::([^{}|]+)\|([^{}]+))?\}/g, (whole, name, one, many) =>
      name in gaps ? String(one === undefined ? gaps[name] : gaps[name] === 1 ? one : many) : whole,
    );
  const say = (key, gaps = {}) => fill(words()[key], gaps);
  const text = (index) => data.texts[index][language === "zh" ? 1 : 0];
  const title = (record) => (record in data.records ? data.records[record][language === "zh" ? 1 : 0] : "");

  /** An element with a class and children; strings become text, never markup. */
  const make = (tag, name, ...children) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    element.append(...children.filter((child) => child !== null));
    return element;
  };

  const cellAt = (row, column) => grid.querySelector(`td[data-at="${row},${column}"]`);
  const place = (element) => element.dataset.at.split(",").map(Number);
  const view = () => grid.dataset.view;
  const stateOf = (cell) => (view() === "after" ? cell.state : cell.breaks ? "breaks" : "works");
  const inWords = (cell) =>
    view() === "as_is"
      ? say(cell.breaks ? "state_as_is_breaks" : "state_works", { count: cell.breaks })
      : say(`state_${cell.state}`, { count: cell.state === "records" ? cell.repairs.length : cell.left });

  const others = (cell) => cell.findings.filter((id) => { const one = data.findings[id]; return one[4] !== "break" && shown.has(one[4]); }).length;

  function label(element) {
    const [row, column] = place(element);
    const cell = data.cells[row][column];
    const pair = say("pair", { verl: data.verl[row], package: data.package, release: data.releases[column] });
    if (cell === null) {
      element.setAttribute("aria-label", `${pair}: ${say("not_there")}`);
      return;
    }
    const more = others(cell);
    element.lastElementChild.textContent = more || "";
    const name = `${pair}: ${inWords(cell)}${more ? `; ${say("more", { count: more })}` : ""}`;
    element.setAttribute("aria-label", name);
    element.title = name;
  }

  function finding(id) {
    const [file, line, symbol, kind, severity, since, record, detail, suggestion] = data.findings[id];
    const where = data.strings[file];
    const folder = where.slice(0, where.lastIndexOf("/") + 1);
    const item = make("li", `${severity}${record === null ? "" : " mended"}`);
    const dated = since === null ? say("always", { release: data.releases[0] }) : say("since", { release: data.releases[since] });
    item.append(
      make("div", "line", make("code", "symbol", data.strings[symbol]), make("span", "small", make("code", "", kind), ` · ${dated}`)),
      make("div", "where mono", make("span", "", folder), make("strong", "", `${where.slice(folder.length)}:${line}`)),
      make("div", "", text(detail)),
    );
    if (record !== null) {
      const name = data.strings[record];
      item.append(make("div", "repair", `${say("repaired_by")} `, make("code", "", name), title(name) ? ` – ${title(name)}` : ""));
    } else if (severity === "break") {
      item.append(make("div", "repair quiet", say("no_record")));
    }
    if (suggestion !== null) item.append(make("div", "repair", text(suggestion)));
    return item;
  }

  function group(heading, ids) {
    if (!ids.length) return [];
    return [make("h3", "", heading), make("ul", "findings", ...ids.map(finding))];
  }

  function render() {
    panel.replaceChildren();
    panel.hidden = open === null;
    for (const element of grid.querySelectorAll("td[aria-selected]")) element.removeAttribute("aria-selected");
    if (open === null) return;
    const [row, column] = open;
    const cell = data.cells[row][column];
    cellAt(row, column).setAttribute("aria-selected", "true");
    const close = make("button", "plain", say("close"));
    close.type = "button";
    close.addEventListener("click", shut);
    const pair = say("pair", { verl: data.verl[row], package: data.package, release: data.releases[column] });
    const top = make("div", "top", make("h2", "", pair));
    panel.append(top);
    if (cell === null) {
      top.append(close);
      panel.append(make("p", "", say("not_there")));
      return;
    }
    top.append(make("span", `badge ${stateOf(cell)}`, inWords(cell)), close);
    panel.append(make("p", "quiet", say("uses", { uses: cell.uses, package: data.package, unresolved: cell.unresolved })));
    if (cell.repairs.length) {
      const lines = cell.repairs.map((id) => make("li", "", make("code", "", data.strings[id]), title(data.strings[id]) ? ` – ${title(data.strings[id])}` : ""));
      panel.append(make("p", "", say("takes")), make("ul", "repairs", ...lines));
    }
    let some = false;
    for (const severity of data.severities.filter((one) => shown.has(one))) {
      const ids = cell.findings.filter((id) => data.findings[id][4] === severity);
      some = some || ids.length > 0;
      panel.append(...group(say("heading", { severity: say(severity), count: ids.length }), ids));
    }
    const added = cell.added.filter((id) => shown.has(data.findings[id][4]));
    panel.append(...group(say("added"), added));
    if (!some && !added.length) panel.append(make("p", "quiet", say(cell.findings.length ? "none_shown" : "nothing")));
  }

  function refresh() {
    document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
    document.title = say("title");
    for (const element of document.querySelectorAll("[data-t]")) element.textContent = say(element.dataset.t);
    for (const element of document.querySelectorAll("[data-a]")) element.setAttribute("aria-label", say(element.dataset.a));
    for (const element of document.querySelectorAll("[data-en]")) element.textContent = element.dataset[language];
    for (const button of document.querySelectorAll("[data-lang]")) button.setAttribute("aria-pressed", String(button.dataset.lang === language));
    for (const element of document.querySelectorAll(".key .of-after")) element.hidden = view() === "as_is";
    grid.querySelectorAll("td").forEach(label);
    render();
  }

  function rove(row, column, focus) {
    for (const element of grid.querySelectorAll('td[tabindex="0"]')) element.tabIndex = -1;
    const element = cellAt(row, column);
    element.tabIndex = 0;
    if (focus) {
      element.focus();
      element.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  }

  const hashOf = (row, column) => `#${encodeURIComponent(data.verl[row])}/${encodeURIComponent(data.releases[column])}`;

  function fromHash() {
    const [verl, release] = location.hash.slice(1).split("/").map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
    const [row, column] = [data.verl.indexOf(verl), data.releases.indexOf(release)];
    open = row >= 0 && column >= 0 ? [row, column] : null;
    if (open) {
      rove(row, column, false);
      cellAt(row, column).scrollIntoView({ block: "nearest", inline: "center" });
    }
    render();
  }

  function choose(element) {
    const [row, column] = place(element);
    rove(row, column, false);
    open = [row, column];
    history.pushState(null, "", hashOf(row, column));
    render();
    panel.focus({ preventScroll: true });
    panel.scrollIntoView({ block: "nearest" });
  }

  function shut() {
    const [row, column] = open;
    open = null;
    history.pushState(null, "", "#");
    render();
    rove(row, column, true);
  }

  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  grid.addEventListener("click", (event) => {
    const element = event.target.closest("td");
    if (element) choose(element);
  });
  grid.addEventListener("keydown", (event) => {
    const element = event.target.closest("td");
    if (!element || event.altKey || event.metaKey) return;
    const [row, column] = place(element);
    const last = [data.verl.length - 1, data.releases.length - 1];
    let to = null;
    if (event.key in steps) to = [row + steps[event.key][0], column + steps[event.key][1]];
    else if (event.key === "Home") to = [event.ctrlKey ? 0 : row, 0];
    else if (event.key === "End") to = [event.ctrlKey ? last[0] : row, last[1]];
    else if (event.key === "Enter" || event.key === " ") choose(element);
    else return;
    event.preventDefault();
    if (to) rove(Math.min(Math.max(to[0], 0), last[0]), Math.min(Math.max(to[1], 0), last[1]), true);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && open) shut();
  });
  for (const input of document.querySelectorAll('input[name="view"]')) {
    input.addEventListener("change", () => { grid.dataset.view = input.value; refresh(); });
  }
  for (const input of document.querySelectorAll('input[name="severity"]')) {
    input.addEventListener("change", () => { shown[input.checked ? "add" : "delete"](input.value); refresh(); });
  }
  for (const button of document.querySelectorAll("[data-lang]")) {
    button.addEventListener("click", () => { language = button.dataset.lang; refresh(); });
  }
  addEventListener("popstate", fromHash);
  addEventListener("hashchange", fromHash);

  const asked = new URLSearchParams(location.search).get("lang") || navigator.language || language;
  language = asked.toLowerCase().startsWith("zh") ? "zh" : "en";
  for (const input of document.querySelectorAll("input")) input.checked = input.defaultChecked;
  rove(0, 0, false);
  refresh();
  fromHash();
})();
