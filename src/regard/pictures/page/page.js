
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const grown = []; // the maps of the words, of weights that came packed
  const $ = (id) => document.getElementById(id);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const state = { view: 0, map: "mean", threshold: 0, side: null, index: -1, pinned: false };
  const other = { read: "written", written: "read" };
  const words = { read: [], written: [] };
  const painted = []; // the words that are shaded now
  let weights = [], top = 1, ramp = [];

  const view = () => data.views[state.view];
  const tokens = (side, at = state.view) => data.views[at][side].tokens;
  const format = (w) => (w >= 0.0005 || w === 0 ? w.toFixed(3) : w.toExponential(1));

  // Weights

  async function unpack({ shape: [count, rows, columns], top, steps, data: text }) {
    const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const planes = new Uint8Array(await new Response(stream).arrayBuffer());
    const size = count * rows * columns, high = planes.subarray(size);
    const all = new Float32Array(size);
    for (let k = 0; k < size; k += 1) all[k] = ((planes[k] + 256 * high[k]) * top) / steps;
    const row = (map, i) => all.subarray((map * rows + i) * columns, (map * rows + i + 1) * columns);
    return Array.from({ length: count }, (_, map) => Array.from({ length: rows }, (_, i) => row(map, i)));
  }

  // Pieces of a word that was read are summed, those of one that was written are averaged.
  function merged(rows, { written, read }) {
    const ends = (starts, count) => [...starts.slice(1), count];
    const last = ends(read, tokens("read", 1).length), bottom = ends(written, rows.length);
    return written.map((first, k) => {
      const line = new Float32Array(read.length);
      for (let i = first; i < bottom[k]; i += 1) {
        read.forEach((from, c) => {
          for (let j = from; j < last[c]; j += 1) line[c] += rows[i][j] / (bottom[k] - first);
        });
      }
      return line;
    });
  }

  function weightsOf(index) {
    const own = view();
    if (!own.groups) return own.maps[index].weights;
    grown[index] ??= merged(data.views[1].maps[index].weights, own.groups);
    return grown[index];
  }

  function chosenMaps() {
    const [kind, row] = state.map.split(":");
    if (row !== undefined) return data.rows[Number(row)].maps;
    return kind === "mean" || kind === "max" ? view().maps.map((_, index) => index) : [Number(kind)];
  }

  function combined() {
    const maps = chosenMaps().map((index) => ({ weights: weightsOf(index) }));
    if (maps.length === 1) return maps[0].weights;
    const max = state.map === "max";
    return maps[0].weights.map((row, i) => row.map((_, j) => {
      let total = 0;
      for (const { weights: w } of maps) total = max ? Math.max(total, w[i][j]) : total + w[i][j];
      return max ? total : total / maps.length;
    }));
  }

  function scaleTop(rows) {
    let largest = 0;
    for (const row of rows) for (const w of row) if (w > largest) largest = w;
    if (largest === 0 || (largest >= 0.5 && largest <= 1)) return 1;
    const power = Math.floor(Math.log10(largest));
    for (const factor of [1, 2, 5]) {
      const candidate = Number(`${factor}e${power}`);
      if (largest <= candidate) return candidate;
    }
    return Number(`1e${power + 1}`);
  }

  const shown = (w) => w >= Math.max(state.threshold, 0.5 / 255) * top;
  const lineOf = (side, index) => Array.from(side === "written" ? weights[index] : weights.map((row) => row[index]));

  // Colours

  function channel(part) {
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }

  function makeRamp() {
    const stops = data.ramps[dark.matches ? "dark" : "light"].map((stop) =>
      [1, 3, 5].map((at) => parseInt(stop.slice(at, at + 2), 16)));
    ramp = Array.from({ length: 256 }, (_, step) => {
      const place = (step / 255) * (stops.length - 1);
      const low = Math.min(Math.floor(place), stops.length - 2);
      const rgb = stops[low].map((a, k) => Math.round(a + (stops[low + 1][k] - a) * (place - low)));
      const [r, g, b] = rgb.map((c) => channel(c / 255));
      const luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
      return { fill: `rgb(${rgb})`, rgb: [...rgb, 255], ink: luminance > 0.179 ? "#000" : "#fff" };
    });
    const fills = ramp.filter((_, step) => step % 15 === 0).map((colour) => colour.fill);
    $("ramp").style.background = `linear-gradient(to right, ${fills})`;
  }

  const colour = (w) => ramp[Math.min(255, Math.round((255 * w) / top))];

  // The two texts

  function fillSide(side) {
    const box = $(side), { direction, language, tokens: list } = view()[side];
    box.textContent = "";
    box.dir = direction;
    box.classList.toggle("long", list.length > 120);
    if (language) box.lang = language;
    $(`${side}-language`).textContent = language || "";
    words[side] = list.map((token, index) => {
      if (token.gap) box.append(token.gap);
      const word = document.createElement("span");
      word.className = token.mark ? "word mark" : "word";
      word.dir = "auto";
      word.tabIndex = index ? -1 : 0;
      word.setAttribute("role", "button");
      word.setAttribute("aria-pressed", "false");
      word.dataset.index = index;
      word.textContent = token.text;
      box.append(word);
      return word;
    });
  }

  function listen(side) {
    const box = $(side);
    const indexOf = (event) => {
      const word = event.target.closest(".word");
      return word ? Number(word.dataset.index) : -1;
    };
    box.addEventListener("pointerover", (event) => {
      const index = indexOf(event);
      if (index >= 0 && event.pointerType !== "touch" && !state.pinned) choose(side, index);
    });
    box.addEventListener("pointerleave", () => { if (!state.pinned) choose(null, -1); });
    box.addEventListener("focusin", (event) => {
      const index = indexOf(event);
      if (index < 0) return;
      words[side].forEach((word) => { if (word.tabIndex === 0) word.tabIndex = -1; });
      words[side][index].tabIndex = 0;
      if (event.target.matches(":focus-visible")) choose(side, index);
    });
    box.addEventListener("focusout", () => { if (!state.pinned) choose(null, -1); });
    box.addEventListener("click", (event) => { if (indexOf(event) >= 0) pin(side, indexOf(event)); });
    box.addEventListener("keydown", (event) => { if (indexOf(event) >= 0) key(event, side, indexOf(event)); });
  }

  function key(event, side, index) {
    const step = view()[side].direction === "rtl" ? -1 : 1;
    const last = words[side].length - 1;
    const moves = {
      ArrowRight: index + step, ArrowLeft: index - step, Home: 0, End: last,
    };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) {
      words[side][Math.min(Math.max(moves[event.key], 0), last)].focus();
    } else if (event.key === "Enter" || event.key === " ") {
      pin(side, index);
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      const best = ranked(side, index)[0];
      words[other[side]][best?.index]?.focus();
    } else {
      return;
    }
    event.preventDefault();
  }

  function pin(side, index) {
    const same = state.pinned && state.side === side && state.index === index;
    state.pinned = !same;
    choose(same ? null : side, same ? -1 : index);
    const best = same ? undefined : ranked(side, index)[0];
    words[other[side]][best?.index]?.scrollIntoView({ block: "nearest" });
  }

  // What is chosen

  function ranked(side, index) {
    return lineOf(side, index)
      .map((w, at) => ({ w, index: at }))
      .filter(({ w }) => shown(w))
      .sort((a, b) => b.w - a.w || a.index - b.index);
  }

  function unpaint() {
    for (const word of painted.splice(0)) {
      word.classList.remove("shaded", "most", "chosen", "pinned");
      word.style.background = word.style.color = "";
      word.setAttribute("aria-pressed", "false");
    }
  }

  function choose(side, index, cell = -1) {
    state.side = side;
    state.index = index;
    unpaint();
    mark(side, index, cell);
    if (side === null) {
      $("status").textContent = invitation;
      return;
    }
    const line = ranked(side, index), targets = words[other[side]], word = words[side][index];
    if (word) {
      word.classList.add(state.pinned ? "pinned" : "chosen");
      word.setAttribute("aria-pressed", String(state.pinned));
      painted.push(word);
    }
    line.forEach(({ w, index: at }, rank) => {
      const { fill, ink } = colour(w), target = targets[at];
      if (!target) return; // a cell is painted by the view
      target.style.background = fill;
      target.style.color = ink;
      target.classList.add("shaded");
      if (rank === 0) target.classList.add("most");
      painted.push(target);
    });
    say(side, index, line, cell);
  }

  function say(side, index, line, cell) {
    const name = (where, at) => {
      const { text, place } = tokens(where)[at];
      return `\u2068${place ? `${place} (${text})` : text}\u2069`;
    };
    const best = line.slice(0, 3).map(({ w, index: at }) => `${name(other[side], at)} ${format(w)}`);
    const intro = best.length > 1 ? `${best.length} strongest: ` : "";
    let text = `${name(side, index)}: ${intro}${best.join(", ") || "nothing above the threshold"}`;
    if (cell >= 0) text = `${name("read", cell)} → ${name("written", index)} ${format(weights[index][cell])}`;
    $("status").textContent = text;
  }

  // The view: the matrix, or the picture

  /* view */

  // The table

  function table() {
    if (!$("numbers").open) return;
    const box = $("table"), columns = tokens("read"), rows = tokens("written");
    box.textContent = "";
    if (columns.length * rows.length > 10000) {
      box.textContent = "The table is left out above 10,000 weights; point at a word instead.";
      return;
    }
    const grid = document.createElement("table");
    const add = (parent, tag, text, scope) => {
      const element = document.createElement(tag);
      if (text !== undefined) element.textContent = text;
      if (scope) element.scope = scope;
      parent.append(element);
      return element;
    };
    const headRow = add(add(grid, "thead"), "tr");
    add(headRow, "td", "");
    columns.forEach((token) => add(headRow, "th", token.text, "col"));
    const body = add(grid, "tbody");
    rows.forEach((token, i) => {
      const line = add(body, "tr");
      add(line, "th", token.text, "row");
      weights[i].forEach((w) => add(line, "td", format(w)));
    });
    box.append(grid);
  }

  // Everything

  function refresh() {
    weights = combined();
    top = scaleTop(weights);
    $("top").textContent = String(top);
    $("threshold-value").textContent = String(Number((state.threshold * top).toPrecision(2)));
    draw();
    table();
    choose(state.side, state.index);
  }

  function changeView() {
    Object.assign(state, { side: null, index: -1, pinned: false });
    unpaint();
    if (!data.picture) fillSide("read");
    fillSide("written");
    refresh();
  }

  function fillControls() {
    const maps = view().maps, select = $("map");
    const option = (value, text) => select.append(new Option(text, value));
    if (maps.length > 1) {
      option("mean", `mean of ${maps.length}`);
      option("max", `max of ${maps.length}`);
    }
    if (data.rows?.length > 1 && data.rows[0].name) {
      data.rows.forEach(({ name, maps: own }, row) => {
        const group = document.createElement("optgroup");
        group.label = name;
        if (own.length > 1) group.append(new Option(`mean of ${name}`, `row:${row}`));
        own.forEach((index) => group.append(new Option(maps[index].name, String(index))));
        select.append(group);
      });
    } else maps.forEach((map, index) => option(String(index), map.name));
    $("map-control").hidden = maps.length < 2;
    $("view-control").hidden = data.views.length < 2;
    $("task").textContent = data.task;
    $("details").textContent = Object.entries(data.details).map(([name, value]) => `${name} ${value}`).join(" · ");
  }

  function listenControls() {
    $("map").addEventListener("change", (event) => { state.map = event.target.value; refresh(); });
    $("view").addEventListener("change", (event) => { state.view = Number(event.target.value); changeView(); });
    $("threshold").addEventListener("input", (event) => { state.threshold = event.target.value / 100; refresh(); });
    $("numbers").addEventListener("toggle", table);
    $("help-button").addEventListener("click", () => $("help").showModal());
    document.addEventListener("keydown", (event) => {
      if ($("help").open) return;
      if (event.key === "Escape") {
        state.pinned = false;
        choose(null, -1);
      } else if (event.key === "?") $("help").showModal();
    });
    dark.addEventListener("change", () => { makeRamp(); refresh(); });
    let width = 0;
    new ResizeObserver(() => {
      if (room().clientWidth === width) return;
      width = room().clientWidth;
      requestAnimationFrame(refresh); // what it draws may change the width again
    }).observe(room());
  }

  function begin() {
    makeRamp();
    fillControls();
    changeView();
    if (!data.picture) listen("read");
    listen("written");
    listenView();
    listenControls();
  }

  if (data.packed) {
    unpack(data.packed).then((all) => {
      data.views[data.views.length - 1].maps.forEach((map, index) => { map.weights = all[index]; });
      begin();
    }, () => { $("status").textContent = "The weights cannot be unpacked; open the page in a newer browser."; });
  } else begin();
})();
