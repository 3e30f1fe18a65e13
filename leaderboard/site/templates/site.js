"use strict";
(() => {
  const all = (where, what) => [...where.querySelectorAll(what)];
  const make = (tag, more = {}, ...inside) => {
    const node = Object.assign(document.createElement(tag), more);
    node.append(...inside);
    return node;
  };
  const hash = () => new URLSearchParams(location.hash.slice(1));
  const keep = (entries) => {
    const given = new URLSearchParams(entries.filter(([, value]) => value));
    history.replaceState(null, "", `#${given}`);
  };

  // Tables: a click on a head sorts by it, a second click the other way.
  document.addEventListener("click", (event) => {
    const head = event.target.closest?.(".sortable th");
    if (!head) return;
    const down = head.getAttribute("aria-sort") === "ascending";
    const index = [...head.parentNode.children].indexOf(head);
    const body = head.closest("table").tBodies[0];
    const key = (row) => row.cells[index].dataset.value ?? row.cells[index].textContent.trim();
    const words = head.classList.contains("text");
    const number = (text) => (words ? Number(text) : parseFloat(text.replaceAll(",", "")));
    const known = (text) => text !== "" && text !== "nan";
    all(head.parentNode, "th").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...[...body.rows].sort((a, b) => {
      const [one, two] = [key(a), key(b)];
      if (!known(one) || !known(two)) return known(two) - known(one);
      const [x, y] = [number(one), number(two)];
      if (!words && isNaN(x) !== isNaN(y)) return isNaN(x) - isNaN(y); // inf and "not reached" after all numbers
      const order = isNaN(x) || isNaN(y) ? one.localeCompare(two) : x - y;
      return down ? -order : order;
    }));
  });

  // Search: the pages whose name has all words.
  const find = document.getElementById("find");
  const search = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = window.pages.filter(([name]) => words.length && words.every((word) => name.toLowerCase().includes(word)));
    const links = fits.slice(0, 20).map(([name, path]) => make("a", { href: find.dataset.root + path, textContent: name }));
    document.getElementById("found").replaceChildren(...links, ...(words.length && !fits.length ? ["Nothing has this name."] : []));
  };
  find.oninput = search;
  search(); // for words typed before this script was loaded

  // Texts to copy.
  for (const text of all(document, "pre.copy")) {
    const button = make("button", { type: "button", className: "copier", textContent: "Copy" });
    button.onclick = async () => {
      try {
        await navigator.clipboard.writeText(text.textContent);
      } catch {
        getSelection().selectAllChildren(text); // without the right to write, the text is selected
      }
      button.textContent = "Copied";
    };
    text.before(button);
  }

  // Claims: the filters and the address's hash say the same.
  const form = document.getElementById("filters");
  if (form) {
    const claims = all(document, "details.claim").map((node) => [node, node.textContent.toLowerCase()]);
    const filter = () => {
      const wanted = Object.fromEntries(new FormData(form));
      const words = wanted.q.toLowerCase().split(/\s+/);
      let shown = 0;
      for (const [node, text] of claims) {
        const { verdict, paper, kind, methods, cause } = node.dataset;
        node.hidden = !(
          (!wanted.verdict || wanted.verdict === verdict) && (!wanted.paper || wanted.paper === paper) &&
          (!wanted.kind || wanted.kind === kind) &&
          (!wanted.methods || methods.split("|").includes(wanted.methods)) &&
          (!wanted.cause || wanted.cause === cause) && words.every((word) => text.includes(word))
        );
        shown += !node.hidden;
      }
      form.querySelector("output").textContent = `${shown} of ${claims.length} claims`;
    };
    const restore = () => {
      for (const field of form.elements) if (field.name) field.value = hash().get(field.name) ?? "";
      filter();
    };
    form.oninput = () => (filter(), keep([...new FormData(form)]));
    form.onsubmit = (event) => event.preventDefault();
    addEventListener("hashchange", restore);
    restore();
  } else if (location.hash) {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target?.tagName === "DETAILS") target.open = true;
  }

  // Figures: one specification each, drawn again when a control changes it.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const walk = (node, visit) => {
    if (Array.isArray(node)) node.forEach((one) => walk(one, visit));
    else if (node && typeof node === "object") {
      visit(node);
      for (const key in node) if (key !== "data" && key !== "datasets") walk(node[key], visit);
    }
  };
  const theme = (space) => {
    const style = getComputedStyle(document.body);
    const [text, line] = [style.color, getComputedStyle(document.querySelector("footer")).borderTopColor];
    const words = { labelColor: text, titleColor: text, labelFontSize: 11, titleFontSize: 12, titleFontWeight: "normal" };
    return {
      background: "transparent", font: "system-ui, sans-serif", view: { stroke: null }, title: { color: text, fontSize: 12, subtitleFontSize: 11, subtitleColor: text },
      axis: { ...words, gridColor: line, domainColor: line, tickColor: line }, point: { filled: true, opacity: 1, size: 40 }, legend: { ...words, title: null, orient: "bottom", columns: space < 600 ? 1 : 3, labelLimit: 0 },
    };
  };
  const MOST = 24; // lines that are drawn at first

  class Plot {
    constructor(node) {
      this.node = node;
      const { datasets = {}, ...spec } = JSON.parse(node.querySelector("script").textContent);
      node.querySelector(".told").textContent = [spec.title?.text ?? []].flat().join(" ");
      this.spec = JSON.stringify(spec);
      this.data = datasets;
      this.rows = Object.values(this.data)[0] ?? [];
      this.costs = ["gradients", "floats", "seconds"].filter((name) => this.rows.some((row) => Number.isFinite(row[name])));
      this.state = {};
      this.names = [];
      const box = make("div", { className: "controls" });
      const looks = {};
      walk(spec, ({ encoding = {}, mark }) => {
        if ((mark?.type ?? mark) !== "line" || encoding.color?.field !== "line") return;
        this.byRound ||= encoding.x.title === "round";
        this.state.log ||= encoding.y.scale?.type === "log";
        this.names = encoding.color.scale.domain;
        for (const [name, at] of this.names.map((name, at) => [name, at])) {
          looks[name] = [encoding.color.scale.range[at], encoding.strokeDash?.scale.range[at] ?? []];
        }
      });
      this.drawn = new Set(this.names.slice(0, MOST));
      if (this.names.length && this.rows.some((row) => "low" in row)) box.append(make("label", {}, this.input("log", "checkbox", { checked: this.state.log }), "log"));
      if (this.byRound) {
        const last = Math.max(...this.rows.map((row) => row.x));
        box.append(make("label", {}, "up to round ", this.input("cut", "number", { min: 1, max: last, placeholder: last })));
        const pick = make("select", { oninput: () => this.set("over", pick.value) }, ...["round", ...this.costs].map((name) => make("option", { textContent: name })));
        if (pick.length > 1) box.append(make("label", {}, "over ", pick));
      }
      const lines = make("div", { className: "controls" });
      const list = (wanted) => {
        const found = this.names.filter((name) => name.toLowerCase().includes(wanted)).slice(0, 4 * MOST);
        all(lines, "label.line").forEach((label) => label.remove());
        lines.append(...found.map((name) => {
          const tick = make("input", { type: "checkbox", checked: this.drawn.has(name), value: name });
          tick.oninput = () => (this.drawn[tick.checked ? "add" : "delete"](name), this.draw());
          const swatch = make("span", { className: "swatch" });
          const [colour, dash] = looks[name];
          swatch.innerHTML = `<svg width="28" height="10" aria-hidden="true"><path d="M0 5H28" stroke-width="2.5"/></svg>`;
          swatch.firstChild.firstChild.style.stroke = dark.matches && colour === "#000000" ? "#f2f2f2" : colour;
          swatch.firstChild.firstChild.style.strokeDasharray = (dash[1] ? dash : []).join(" ");
          return make("label", { className: "line" }, tick, swatch, name);
        }));
      };
      if (this.names.length > MOST) {
        const find = make("input", { type: "search", placeholder: "part of a name" });
        find.oninput = () => list(find.value.toLowerCase());
        lines.append(make("label", {}, `${this.names.length} lines, the first ${MOST} of them drawn. Find: `, find));
      }
      if (this.names.length > 1) list("");
      node.querySelector("figcaption").after(box, lines);
      const table = node.querySelector("details.data");
      table.ontoggle = () => table.children.length === 1 && table.append(this.table());
      this.draw();
    }

    input(name, type, more = {}) {
      const field = make("input", { type, ...more });
      field.oninput = () => this.set(name, type === "checkbox" ? field.checked : field.value);
      return field;
    }

    set(name, value) {
      this.state[name] = value;
      this.draw();
    }

    table() {
      const keys = Object.keys(this.rows[0] ?? {}).filter((key) => key !== "plot").sort((a, b) => (b === "line") - (a === "line"));
      const head = keys.map((key) => make("th", {}, make("button", { type: "button", textContent: key })));
      const body = this.rows.slice(0, 500).map((row) => make("tr", {}, ...keys.map((key) => make("td", { textContent: row[key] ?? "" }))));
      const grid = make("table", { className: "sortable" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body));
      const more = this.rows.length > 500 ? `The first 500 of ${this.rows.length} rows.` : "";
      return make("div", { className: "wide", tabIndex: 0 }, grid, make("p", { className: "caption", textContent: more }));
    }

    // Widths that fill the page, equal in a column; and tooltips at the points of lines and at dots.
    fit(views, columns, space) {
      const shown = ["line", "row", "where", "x", "value", "sd", "seeds"].filter((name) => name in (this.rows[0] ?? {}));
      const tooltip = shown.map((field) => ({ field, type: typeof this.rows[0][field] === "number" ? "quantitative" : "nominal" }));
      const beside = views.map((view) => {
        const parts = view.layer ?? [view];
        const line = parts.find(({ mark, encoding }) => mark.type === "line" && encoding.y.field === "value");
        if (line) view.layer.push({ mark: { type: "point", opacity: 0, size: 120, clip: true }, encoding: { x: line.encoding.x, y: line.encoding.y, tooltip } });
        parts.forEach((part) => part.mark.type === "point" && !part.data && part.encoding.x?.field && (part.encoding.tooltip ??= tooltip));
        const y = parts.map(({ encoding }) => encoding.y).find((one) => one?.type === "nominal");
        if (!y || y.axis === null) return y ? 20 : 85;
        const names = y.scale?.domain ?? this.rows.map((row) => row[y.field]);
        const words = Math.min(60 + 6.5 * Math.max(...names.map((name) => name.length)), 0.5 * space);
        parts.forEach(({ encoding }) => encoding.y?.axis && (encoding.y.axis.labelLimit = words - 50));
        return words;
      });
      const column = (at) => Math.max(...beside.filter((_, other) => other % columns === at % columns));
      const row = (of) => views.map((_, at) => at).filter((at) => Math.floor(at / columns) === of);
      const factor = (of) => (space - row(of).reduce((sum, at) => sum + column(at), 20)) / row(of).reduce((sum, at) => sum + views[at].width, 0);
      const least = Math.min(...[...Array(Math.ceil(views.length / columns)).keys()].filter((of) => row(of).length === Math.min(columns, views.length)).map(factor));
      views.forEach((view) => (view.width = Math.max(100, Math.floor(view.width * least))));
    }

    draw() {
      const { log, cut, over } = this.state;
      const spec = JSON.parse(dark.matches ? this.spec.replaceAll('"#000000"', '"#f2f2f2"') : this.spec);
      const along = this.costs.includes(over);
      const shown = (row) => (!this.names.includes(row.line) || this.drawn.has(row.line)) &&
        (!cut || row.x === undefined || row.x <= Number(cut)) && (!log || row.value === undefined || row.value > 0);
      const changed = (row) => ({ ...row, ...(along && "x" in row ? { x: row[over] } : {}), ...(log && row.low <= 0 ? { low: row.value } : {}) });
      spec.datasets = Object.fromEntries(Object.entries(this.data).map(([name, rows]) => [name, rows.filter(shown).map(changed)]));
      const space = this.node.clientWidth;
      const columns = Math.max(1, Math.min(spec.columns, spec.concat.length, Math.floor(space / 300)));
      spec.columns = columns;
      delete spec.background;
      delete spec.config; // the page's theme
      delete spec.title; // the caption stands in the page
      this.fit(spec.concat, columns, space);
      walk(spec, (one) => {
        const { x, y } = one.encoding ?? {};
        if (y?.type === "quantitative" && log !== undefined && log !== (y.scale?.type === "log")) y.scale = { type: log ? "log" : "linear", zero: false };
        if (x?.field === "x" && (cut || along)) x.scale = { zero: false };
        if (x?.field === "x" && along) x.title = over;
        for (const channel of Object.values(one.encoding ?? {})) {
          const { field, scale } = channel;
          if (field !== "line" || !scale?.domain || !this.names.length) continue;
          channel.legend = null;
          const kept = scale.domain.map((name) => this.drawn.has(name));
          scale.domain = scale.domain.filter((_, at) => kept[at]);
          if (scale.range) scale.range = scale.range.filter((_, at) => kept[at]);
        }
      });
      const view = this.node.querySelector(".view");
      const renderer = this.rows.length > 3000 ? "canvas" : "svg";
      return vegaEmbed(view, spec, { actions: false, logLevel: 1, renderer, config: theme(space), tooltip: { theme: dark.matches ? "dark" : "light" } })
        .catch((error) => (view.textContent = `This figure cannot be drawn: ${error.message}`));
    }
  }
  const plots = [];
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) {
      seen.unobserve(target);
      plots.push(new Plot(target));
    }
  }, { rootMargin: "400px" });
  all(document, ".plot").forEach((node) => seen.observe(node));
  dark.addEventListener("change", () => plots.forEach((plot) => plot.draw()));
})();
