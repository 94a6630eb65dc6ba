(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const panel = document.getElementById("cell");
  const split = document.getElementById("split");
  const grid = document.querySelector("table.grid");
  const shown = new Set(data.severities);
  let open = null;

  const words = () => data.words[page.language];
  /** `{count} {count:file|files}`, by gaps: the number, and the word for it. */
  const fill = (template, gaps) =>
    template.replace(/\{(\w+)(?::([^{}|]+)\|([^{}]+))?\}/g, (whole, name, one, many) =>
      name in gaps ? String(one === undefined ? gaps[name] : gaps[name] === 1 ? one : many) : whole,
    );
  const say = (key, gaps = {}) => fill(words()[key], gaps);
  const text = (index) => data.texts[index][page.language === "zh" ? 1 : 0];
  const title = (record) => (record in data.records ? data.records[record][page.language === "zh" ? 1 : 0] : "");

  /** An element with a class and children; strings become text, never markup. */
  const make = (tag, name, ...children) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    element.append(...children.filter((child) => child !== null));
    return element;
  };

  const cells = [...grid.querySelectorAll("td")];
  const width = data.releases.length;
  const cellAt = (row, column) => cells[row * width + column];
  const place = (element) => element.dataset.at.split(",").map(Number);
  const view = () => grid.dataset.view;
  const stateOf = (cell) => (view() === "after" ? cell.state : cell.breaks ? "breaks" : "works");
  const inWords = (cell) =>
    view() === "as_is"
      ? say(cell.breaks ? "state_as_is_breaks" : "state_works", { count: cell.breaks })
      : say(`state_${cell.state}`, { count: cell.state === "records" ? cell.repairs.length : cell.left });

  const others = (cell) => cell.findings.filter((id) => { const one = data.findings[id]; return one[4] !== "break" && shown.has(one[4]); }).length;

  /* Neighbours with the same findings are folded: their first stands for all, and its heading names the first and the last. */
  const folds = [...grid.querySelectorAll("[data-fold]")].map((button) => ({
    button, row: button.dataset.fold === "row", first: Number(button.dataset.first), last: Number(button.dataset.end),
  }));

  function fold(one, folded) {
    one.button.setAttribute("aria-expanded", String(!folded));
    for (let at = one.first + 1; at <= one.last; at += 1) {
      const parts = one.row ? [grid.querySelector(`tr[data-row="${at}"]`)] : [grid.querySelector(`th[data-column="${at}"]`), ...data.verl.map((_, row) => cellAt(row, at))];
      for (const part of parts) part.hidden = folded;
    }
  }

  /** What a row or column stands for: one release, or `0.18.0 – 0.22.1` where it is folded. */
  function named(releases, at, isRow) {
    const found = folds.find((one) => one.row === isRow && one.first === at && one.button.getAttribute("aria-expanded") === "false");
    return found ? `${releases[at]} – ${releases[found.last]}` : releases[at];
  }

  const pairOf = (row, column) => say("pair", { verl: named(data.verl, row, true), package: data.package, release: named(data.releases, column, false) });

  function label(element) {
    const [row, column] = place(element);
    const cell = data.cells[row][column];
    const pair = pairOf(row, column);
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
    const item = make("li", severity);
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

  const quoted = (word) => (/^[\w.,+=:@%/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

  function command(lead, ...parts) {
    const before = make("span", "before", say("copy"));
    const after = make("span", "after", say("copied"));
    after.hidden = true;
    const button = make("button", "", before, after);
    button.type = "button";
    button.dataset.copy = "";
    return [make("p", "small", lead), make("div", "command", make("pre", "", parts.map(quoted).join(" ")), button)];
  }

  /** The commands that look into a pair, and that make the edits of its records in a fork. */
  function commands(row, column, cell) {
    const [verl, pins] = [data.verl[row], [[data.package, data.releases[column]], ...Object.entries(data.beside)]];
    const against = pins.flatMap(([name, version]) => ["--against", `${name}==${version}`]);
    const assumed = pins.flatMap(([name, version]) => ["--assume", `${name}==${version}`]);
    const repaired = cell.findings.some((id) => data.findings[id][6] !== null);
    return [
      ...(repaired ? command(say("to_apply", { verl }), "uky-patch", ...assumed, "apply") : []),
      ...command(say("to_check"), "uky-patch", "check", "--verl", verl, ...against),
    ];
  }

  function render() {
    panel.replaceChildren();
    panel.hidden = open === null;
    split.classList.toggle("open", open !== null);
    document.body.classList.toggle("opened", open !== null);
    for (const element of grid.querySelectorAll("td[aria-selected]")) element.removeAttribute("aria-selected");
    if (open === null) return;
    const [row, column] = open;
    const cell = data.cells[row][column];
    cellAt(row, column).setAttribute("aria-selected", "true");
    const close = make("button", "plain", say("close"));
    close.type = "button";
    close.addEventListener("click", shut);
    const heading = make("h2", "", pairOf(row, column));
    heading.id = "pair";
    const top = make("div", "top", heading);
    panel.append(top);
    panel.scrollTop = 0;
    if (cell === null) {
      top.append(close);
      panel.append(make("p", "", say("not_there")));
      return;
    }
    top.append(make("span", `badge ${stateOf(cell)}`, inWords(cell)), close);
    if (pairOf(row, column) !== say("pair", { verl: data.verl[row], package: data.package, release: data.releases[column] })) {
      panel.append(make("p", "small", say("stands_for", { verl: data.verl[row], package: data.package, release: data.releases[column] })));
    }
    panel.append(make("p", "quiet", say("uses", { uses: cell.uses, package: data.package, unresolved: cell.unresolved })));
    if (cell.repairs.length) {
      const lines = cell.repairs.map((id) => make("li", "", make("code", "", data.strings[id]), title(data.strings[id]) ? ` – ${title(data.strings[id])}` : ""));
      panel.append(make("p", "", say("takes")), make("ul", "repairs", ...lines));
    }
    panel.append(...commands(row, column, cell));
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
    for (const element of document.querySelectorAll(".key .of-after")) element.hidden = view() === "as_is";
    cells.forEach(label);
    render();
  }

  /** Make one cell the one that Tab leads to, and show it beside or above what is open. */
  function rove(row, column, focus) {
    for (const element of grid.querySelectorAll('td[tabindex="0"]')) element.tabIndex = -1;
    const element = cellAt(row, column);
    element.tabIndex = 0;
    if (focus) element.focus({ preventScroll: true });
    return element;
  }

  const nearest = (element) => element.scrollIntoView({ block: "nearest", inline: "nearest" });
  const hashOf = (row, column) => `#${encodeURIComponent(data.verl[row])}/${encodeURIComponent(data.releases[column])}`;

  function fromHash() {
    const [verl, release] = location.hash.slice(1).split("/").map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
    const [row, column] = [data.verl.indexOf(verl), data.releases.indexOf(release)];
    open = row >= 0 && column >= 0 ? [row, column] : null;
    if (open) {
      for (const one of folds) {
        const at = one.row ? row : column;
        if (at > one.first && at <= one.last) fold(one, false);
      }
      rove(row, column, false);
    }
    refresh();
    if (open) nearest(cellAt(row, column));
  }

  function choose(element) {
    const [row, column] = place(element);
    rove(row, column, false);
    open = [row, column];
    history.pushState(null, "", hashOf(row, column));
    render();
    panel.focus({ preventScroll: true });
    nearest(element);
  }

  function shut() {
    const [row, column] = open;
    open = null;
    history.pushState(null, "", "#");
    render();
    nearest(rove(row, column, true));
  }

  /** The next cell in a direction that is not folded away; the same one at the edge. */
  function beside(row, column, [down, right]) {
    for (let [y, x] = [row + down, column + right]; y in data.verl && x in data.releases; y += down, x += right) {
      const element = cellAt(y, x);
      if (!element.hidden && !element.parentElement.hidden) return [y, x];
    }
    return [row, column];
  }

  function farthest(row, column, step) {
    for (;;) {
      const [y, x] = beside(row, column, step);
      if (y === row && x === column) return [row, column];
      [row, column] = [y, x];
    }
  }

  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  grid.addEventListener("click", (event) => {
    const element = event.target.closest("td");
    const button = event.target.closest("[data-fold]");
    if (element) choose(element);
    if (button) {
      const one = folds.find((found) => found.button === button);
      fold(one, button.getAttribute("aria-expanded") === "true");
      settle();
    }
  });
  grid.addEventListener("keydown", (event) => {
    const element = event.target.closest("td");
    if (!element || event.altKey || event.metaKey) return;
    const [row, column] = place(element);
    let to = null;
    if (event.key in steps) to = beside(row, column, steps[event.key]);
    else if (event.key === "Home") to = event.ctrlKey ? [0, 0] : farthest(row, column, steps.ArrowLeft);
    else if (event.key === "End") to = farthest(...(event.ctrlKey ? farthest(row, column, steps.ArrowDown) : [row, column]), steps.ArrowRight);
    else if (event.key === "Enter" || event.key === " ") choose(element);
    else return;
    event.preventDefault();
    if (to) nearest(rove(...to, true));
  });

  /** After folding: what is open, or can be reached with Tab, is not left in what is folded away. */
  function settle() {
    const gone = (element) => element.hidden || element.parentElement.hidden;
    const reachable = grid.querySelector('td[tabindex="0"]');
    if (open && gone(cellAt(...open))) open = null;
    if (gone(reachable)) rove(0, 0, false);
    refresh();
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && open) shut();
  });
  for (const input of document.querySelectorAll('input[name="view"]')) {
    input.addEventListener("change", () => { grid.dataset.view = input.value; refresh(); });
  }
  for (const input of document.querySelectorAll('input[name="severity"]')) {
    input.addEventListener("change", () => { shown[input.checked ? "add" : "delete"](input.value); refresh(); });
  }
  document.getElementById("unfold")?.addEventListener("change", (event) => {
    for (const one of folds) fold(one, !event.target.checked);
    settle();
  });
  addEventListener("popstate", fromHash);
  addEventListener("hashchange", fromHash);

  for (const input of document.querySelectorAll("input")) input.checked = input.defaultChecked;
  rove(0, 0, false);
  page.start(refresh);
  fromHash();
})();
