
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const state = { row: 0, shown: "strongest", shade: "sentence" };
  const invitation = "Point at a word to see its weight. The bars are the sentences of the document.";
  const mostBars = 400, mostRows = 2000;
  let ramp = [];

  const format = (w) => (w >= 0.0005 || w === 0 ? w.toFixed(3) : w.toExponential(1));
  const own = () => data.labels[state.row];
  const isolated = (text) => `\u2068${text}\u2069`;
  const largest = (list) => list.reduce((most, w) => Math.max(most, w), 0);

  function add(parent, tag, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  }

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
      return { fill: `rgb(${rgb})`, ink: luminance > 0.179 ? "#000" : "#fff" };
    });
    const fills = ramp.filter((_, step) => step % 15 === 0).map((colour) => colour.fill);
    $("ramp").style.background = `linear-gradient(to right, ${fills})`;
  }

  function scaleTop(most) {
    if (most === 0 || (most >= 0.5 && most <= 1)) return 1;
    const power = Math.floor(Math.log10(most));
    for (const factor of [1, 2, 5]) {
      const candidate = Number(`${factor}e${power}`);
      if (most <= candidate) return candidate;
    }
    return Number(`1e${power + 1}`);
  }

  // What is shown

  function order() {
    const { sentences, strongest } = own(), every = data.sentences.map((_, index) => index);
    if (state.shown === "strongest") return strongest;
    if (state.shown === "sorted") every.sort((a, b) => sentences[b] - sentences[a] || a - b);
    return every.slice(0, mostRows);
  }

  // A word's weight as it is shaded
  function weightOf(index, at) {
    const { words, sentences } = own();
    const within = words[data.sentences[index].first + at];
    return state.shade === "sentence" ? within : within * sentences[index];
  }

  function describe(index, at) {
    const { words, sentences } = own(), sentence = data.sentences[index];
    const within = words[sentence.first + at];
    const parts = `${format(within)} of its sentence, ${format(within * sentences[index])} of the document`;
    return `${isolated(sentence.words[at][1])}: ${parts}`;
  }

  function named(index) {
    const { words } = own(), { first, words: list } = data.sentences[index];
    const ranked = list.map((word, at) => ({ text: word[1], w: words[first + at] }))
      .filter(({ w }) => w > 0).sort((a, b) => b.w - a.w).slice(0, 3);
    return ranked.filter(({ w }) => w >= 0.1 * ranked[0].w)
      .map(({ text, w }) => `${isolated(text)} ${format(w)}`).join(", ");
  }

  function drawSentence(index, top, bar) {
    const sentence = data.sentences[index], weight = own().sentences[index];
    const item = add($("sentences"), "li", "sentence");
    item.dataset.index = index;
    const side = add(item, "div", "weight");
    const gauge = add(add(side, "div", "gauge"), "span");
    gauge.style.width = `${Math.min(100, (100 * weight) / bar)}%`;
    add(side, "span", "", format(weight));
    const box = add(item, "div");
    const text = add(box, "div", "text");
    text.dir = data.direction;
    if (data.language) text.lang = data.language;
    sentence.words.forEach(([gap, word], at) => {
      if (gap) text.append(gap);
      const shaded = add(text, "span", "word shaded", word);
      const { fill, ink } = ramp[Math.min(255, Math.round((255 * weightOf(index, at)) / top))];
      shaded.style.background = fill;
      shaded.style.color = ink;
      shaded.dataset.word = at;
    });
    if (sentence.rest) text.append(sentence.rest);
    add(box, "div", "named", named(index) || "no word has any weight");
  }

  function draw() {
    const indices = order(), { sentences } = own();
    const weights = indices.flatMap((index) => data.sentences[index].words.map((_, at) => weightOf(index, at)));
    const top = scaleTop(largest(weights)), bar = scaleTop(largest(sentences));
    $("sentences").textContent = "";
    indices.forEach((index) => drawSentence(index, top, bar));
    $("top").textContent = `${top} of the ${state.shade}'s weight; a full bar is ${bar} of the document's`;
    const left = data.sentences.length - indices.length;
    const held = 1 - indices.reduce((sum, index) => sum + sentences[index], 0);
    const many = `${indices.length} of ${data.sentences.length} sentences are shown`;
    const rest = left ? `; the ${left} left out hold ${format(Math.max(held, 0))} of the weight` : "";
    $("remark").textContent = data.sentences.length ? `${many}${rest}. ${own().verdict}` : "Nothing was read.";
    $("label").textContent = own().text;
    table();
  }

  // The bars

  function drawOverview() {
    const { sentences } = own(), bar = scaleTop(largest(sentences));
    const every = sentences.map((w, index) => ({ w, index }));
    const kept = every.length <= mostBars ? every
      : every.sort((a, b) => b.w - a.w).slice(0, mostBars).sort((a, b) => a.index - b.index);
    $("overview").textContent = "";
    kept.forEach(({ w, index }, at) => {
      const button = add($("overview"), "button", "bar");
      button.type = "button";
      button.tabIndex = at ? -1 : 0;
      button.dataset.index = index;
      button.setAttribute("aria-label", `sentence ${index + 1}, weight ${format(w)}`);
      add(button, "span").style.height = `${Math.min(100, (100 * w) / bar)}%`;
    });
  }

  function go(index) {
    const find = () => document.querySelector(`.sentence[data-index="${index}"]`);
    if (!find()) {
      state.shown = $("shown").value = "all";
      draw();
    }
    const found = find();
    if (!found) return; // beyond the most that are drawn
    document.querySelectorAll(".sentence.found").forEach((item) => item.classList.remove("found"));
    found.classList.add("found");
    found.scrollIntoView({ block: "nearest" });
    $("status").textContent = `Sentence ${index + 1}: ${format(own().sentences[index])} of the document. ${named(index)}`;
  }

  function listenOverview() {
    const bars = () => [...$("overview").children];
    $("overview").addEventListener("click", (event) => {
      const bar = event.target.closest(".bar");
      if (bar) go(Number(bar.dataset.index));
    });
    $("overview").addEventListener("keydown", (event) => {
      const list = bars(), at = list.indexOf(event.target), last = list.length - 1;
      const moves = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last };
      if (at < 0 || !(event.key in moves) || event.ctrlKey || event.metaKey || event.altKey) return;
      const next = list[Math.min(Math.max(moves[event.key], 0), last)];
      list.forEach((bar) => { bar.tabIndex = -1; });
      next.tabIndex = 0;
      next.focus();
      event.preventDefault();
    });
  }

  // The table

  function table() {
    if (!$("numbers").open) return;
    const box = $("table"), { sentences } = own();
    box.textContent = "";
    const grid = add(box, "table");
    const head = add(add(grid, "thead"), "tr");
    for (const name of ["sentence", "weight", "words"]) add(head, "th", "", name).scope = "col";
    const body = add(grid, "tbody");
    order().forEach((index) => {
      const row = add(body, "tr");
      add(row, "th", "", String(index + 1)).scope = "row";
      add(row, "td", "", format(sentences[index]));
      add(row, "td", "", named(index));
    });
  }

  function refresh() {
    drawOverview();
    draw();
    $("status").textContent = invitation;
  }

  function fillControls() {
    document.title = `${data.task}: ${own().text}`;
    $("task").textContent = data.task;
    $("details").textContent = Object.entries(data.details).map(([name, value]) => `${name} ${value}`).join(" · ");
    $("map-control").hidden = data.labels.length < 2;
    data.labels.forEach(({ text }, row) => { add($("map"), "option", "", text).value = row; });
  }

  function listenControls() {
    $("map").addEventListener("change", (event) => { state.row = Number(event.target.value); refresh(); });
    $("shown").addEventListener("change", (event) => { state.shown = event.target.value; draw(); });
    $("shade").addEventListener("change", (event) => { state.shade = event.target.value; draw(); });
    $("numbers").addEventListener("toggle", table);
    $("help-button").addEventListener("click", () => $("help").showModal());
    $("sentences").addEventListener("pointerover", (event) => {
      const word = event.target.closest(".word"), item = event.target.closest(".sentence");
      if (word && item) $("status").textContent = describe(Number(item.dataset.index), Number(word.dataset.word));
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "?" && !$("help").open) $("help").showModal();
    });
    dark.addEventListener("change", () => { makeRamp(); draw(); });
  }

  makeRamp();
  fillControls();
  refresh();
  listenOverview();
  listenControls();
})();
