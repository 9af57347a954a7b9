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

  function draw() {
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
