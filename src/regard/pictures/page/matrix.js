  // The matrix

  const invitation = "Point at a word to see what it looked at, or what looked at it.";
  const room = () => $("scroll");
  let plan = null;

  const short = (text) => {
    const letters = Array.from(text);
    return letters.length > 24 ? `${letters.slice(0, 23).join("")}…` : text;
  };

  function layout(context) {
    const columns = tokens("read").map((t) => short(t.text)), rows = tokens("written").map((t) => short(t.text));
    const count = Math.max(columns.length, rows.length, 1);
    const least = count <= 64 ? 17 : count <= 128 ? 9 : 3;
    const family = getComputedStyle(document.body).fontFamily;
    const wide = room().clientWidth;
    const labelled = least > 8;
    context.font = `14px ${family}`;
    const widest = (list) => (labelled ? Math.max(0, ...list.map((t) => context.measureText(t).width)) : 0);
    const rowWidth = widest(rows), columnWidth = widest(columns);
    const left = labelled ? Math.ceil(rowWidth) + 16 : 4;
    let cell = (wide - left - 8) / Math.max(columns.length, 1);
    const level = cell >= columnWidth + 10 && columnWidth + 10 <= 84;
    const overhang = labelled && !level ? columnWidth * 0.71 + 8 : 0;
    if (level) cell = Math.max(Math.min(cell, count <= 6 ? 64 : 48), columnWidth + 10);
    else cell = Math.min(Math.max((wide - left - overhang - 8) / Math.max(columns.length, 1), least), 44);
    cell = Math.max(Math.floor(cell), 3);
    const head = !labelled ? 4 : level ? 34 : Math.ceil(columnWidth * 0.71) + 28;
    const reverse = view().read.direction === "rtl";
    const place = (j) => (reverse ? columns.length - 1 - j : j);
    return {
      columns, rows, cell, left, head, level, labelled, place, family,
      size: Math.min(14, cell * 0.8),
      width: Math.ceil(left + columns.length * cell + overhang + 8), height: head + rows.length * cell + 4,
    };
  }

  // All maps as small panels

  const PANEL = 68, SPACE = 8;
  const small = [];
  let panels = [];

  function shrunk(rows, most) {
    const columns = rows.length ? rows[0].length : 0;
    const height = Math.min(rows.length, most), width = Math.min(columns, most);
    const shared = Array.from({ length: height }, () => new Float32Array(width));
    rows.forEach((row, i) => {
      const line = shared[Math.floor((i * height) / rows.length)];
      row.forEach((w, j) => {
        const at = Math.floor((j * width) / columns);
        if (w > line[at]) line[at] = w;
      });
    });
    return shared;
  }

  // A panel's cells as levels of its own largest weight, kept for each view.
  function levels(index) {
    const kept = (small[state.view] ??= []);
    if (kept[index]) return kept[index];
    const rows = shrunk(weightsOf(index), 64);
    let most = 0;
    for (const row of rows) for (const w of row) if (w > most) most = w;
    kept[index] = rows.map((row) => Array.from(row, (w) => (most ? Math.round((255 * w) / most) : 0)));
    return kept[index];
  }

  function drawPanel(context, { index, x, y, wide, tall }) {
    const rows = levels(index), width = rows[0]?.length ?? 0, reverse = view().read.direction === "rtl";
    if (!width) return;
    const image = new ImageData(width, rows.length);
    rows.forEach((row, i) => row.forEach((level, j) => {
      image.data.set(ramp[level].rgb, 4 * (i * width + (reverse ? width - 1 - j : j)));
    }));
    const tile = document.createElement("canvas");
    tile.width = width;
    tile.height = rows.length;
    tile.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(tile, x, y, wide, tall);
  }

  function drawPanels() {
    $("heads").hidden = view().maps.length < 2;
    if ($("heads").hidden) return;
    const canvas = $("multiples"), context = canvas.getContext("2d");
    const rows = tokens("written").length || 1, columns = tokens("read").length || 1;
    const cell = PANEL / Math.max(rows, columns);
    const wide = Math.max(columns * cell, 6), tall = Math.max(rows * cell, 6);
    context.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const names = data.rows.map(({ name }) => short(name));
    const left = Math.ceil(Math.max(0, ...names.map((name) => name && context.measureText(name).width + 10)));
    const most = Math.max(...data.rows.map(({ maps }) => maps.length));
    const width = left + most * (wide + SPACE), height = data.rows.length * (tall + SPACE) + SPACE;
    const scale = Math.min(devicePixelRatio || 1, Math.sqrt(16e6 / (width * height)));
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    context.scale(scale, scale);
    context.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    context.textAlign = "right";
    context.textBaseline = "middle";
    panels = data.rows.flatMap(({ maps }, row) => maps.map((index, k) => (
      { index, x: left + k * (wide + SPACE) + SPACE / 2, y: row * (tall + SPACE) + SPACE / 2, wide, tall })));
    panels.forEach((panel) => drawPanel(context, panel));
    context.fillStyle = getComputedStyle(document.body).color;
    names.forEach((name, row) => context.fillText(name, left - 6, row * (tall + SPACE) + SPACE / 2 + tall / 2));
    const chosen = new Set(chosenMaps());
    context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
    context.lineWidth = 2;
    if (chosen.size < panels.length) {
      panels.filter(({ index }) => chosen.has(index)).forEach(({ x, y }) => (
        context.strokeRect(x - 2, y - 2, wide + 4, tall + 4)));
    }
  }

  function panelAt(event) {
    const box = $("multiples").getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    return panels.find((one) => x >= one.x && x < one.x + one.wide && y >= one.y && y < one.y + one.tall);
  }

  function listenPanels() {
    $("multiples").addEventListener("click", (event) => {
      const found = panelAt(event);
      if (!found) return;
      state.map = String(found.index);
      $("map").value = state.map;
      refresh();
    });
    $("multiples").addEventListener("pointermove", (event) => {
      const found = panelAt(event);
      $("multiples").title = found ? view().maps[found.index].name : "";
    });
  }

  function draw() {
    drawPanels();
    const canvas = $("matrix"), context = canvas.getContext("2d");
    plan = layout(context);
    const { width, height } = plan;
    const scale = Math.min(devicePixelRatio || 1, Math.sqrt(16e6 / (width * height)));
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    context.scale(scale, scale);
    drawCells(context);
    if (plan.labelled) drawLabels(context);
    const size = `${plan.rows.length} written by ${plan.columns.length} read`;
    canvas.setAttribute("aria-label", `Matrix of weights, ${size}; the table below has the numbers`);
  }

  function drawCells(context) {
    const { cell, left, head, place } = plan;
    const gap = cell > 20 ? 1.5 : cell > 6 ? 0.5 : 0, side = cell - 2 * gap, radius = cell > 20 ? 4 : 0;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = `11px ${plan.family}`;
    const tiny = cell <= 6;
    if (tiny) {
      context.fillStyle = ramp[0].fill;
      context.fillRect(left, head, plan.columns.length * cell, plan.rows.length * cell);
    }
    weights.forEach((row, i) => row.forEach((w, j) => {
      if (tiny && !shown(w)) return;
      const { fill, ink } = shown(w) ? colour(w) : ramp[0];
      const x = left + place(j) * cell + gap, y = head + i * cell + gap;
      context.fillStyle = fill;
      if (radius) {
        context.beginPath();
        context.roundRect(x, y, side, side, radius);
        context.fill();
      } else context.fillRect(x, y, side, side);
      if (cell >= 36 && w >= 0.005 && w < 9.995 && shown(w)) {
        context.fillStyle = ink;
        context.fillText(w.toFixed(2), x + side / 2, y + side / 2 + 1);
      }
    }));
  }

  function drawLabels(context) {
    const { cell, left, head, place, level } = plan;
    context.font = `${plan.size}px ${plan.family}`;
    context.fillStyle = getComputedStyle(document.body).color;
    context.textBaseline = "middle";
    const write = (text, side, x, y, align, turn) => {
      context.save();
      context.translate(x, y);
      context.rotate(turn);
      context.direction = side === "rtl" ? "rtl" : "ltr";
      context.textAlign = align;
      context.fillText(text, 0, 0);
      context.restore();
    };
    const { read, written } = view();
    plan.rows.forEach((text, i) => write(text, written.direction, left - 10, head + (i + 0.5) * cell, "right", 0));
    plan.columns.forEach((text, j) => {
      const x = left + (place(j) + 0.5) * cell;
      if (level) write(text, read.direction, x, head - 16, "center", 0);
      else write(text, read.direction, x, head - 10, "left", -Math.PI / 4);
    });
  }

  function mark(side, index, cell) {
    const band = (id, on, x, y, width, height) => {
      const box = $(id);
      box.hidden = !on;
      if (!on) return;
      box.style.transform = `translate(${x}px, ${y}px)`;
      box.style.width = `${width}px`;
      box.style.height = `${height}px`;
    };
    const { cell: size, left, head, place, columns, rows } = plan;
    const row = side === "written" ? index : -1, column = side === "read" ? index : cell;
    band("row-band", row >= 0, left - 2, head + row * size - 1, columns.length * size + 4, size + 2);
    band("column-band", column >= 0, left + place(column) * size - 1, head - 2, size + 2, rows.length * size + 4);
  }

  function cellAt(event) {
    const box = $("matrix").getBoundingClientRect();
    const i = Math.floor((event.clientY - box.top - plan.head) / plan.cell);
    const at = Math.floor((event.clientX - box.left - plan.left) / plan.cell);
    if (i < 0 || i >= plan.rows.length || at < 0 || at >= plan.columns.length) return null;
    return [i, plan.place(at)];
  }

  let last = "";
  function point(event) {
    const found = cellAt(event);
    const now = String(found);
    if (state.pinned || now === last) return;
    last = now;
    if (found) choose("written", found[0], found[1]);
    else choose(null, -1);
  }

  function listenView() {
    listenPanels();
    const canvas = $("matrix");
    canvas.addEventListener("pointermove", point);
    canvas.addEventListener("pointerleave", () => { last = ""; if (!state.pinned) choose(null, -1); });
    canvas.addEventListener("click", (event) => {
      const found = cellAt(event);
      if (!found) return;
      state.pinned = !state.pinned || state.side !== "written" || state.index !== found[0];
      choose("written", found[0], found[1]);
    });
  }
