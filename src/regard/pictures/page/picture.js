  // The picture

  const invitation = `Point at a ${data.unit} to see where it looked, or at the picture to see which ${data.unit}s looked there.`;
  const room = () => $("looks");
  const { rows: down, columns: across, sentinel, width: fullWidth, height: fullHeight, area, whole } = data.picture;
  const count = across * down;
  const photo = $("photo");
  const cover = { smooth: true, opacity: 0.75 };
  const mostPanels = 120;
  let panels = [], panelsOf = null, stageSize = [1, 1], timer = 0;

  function veil(value) {
    const { dim, lit, haze } = data.picture.veil;
    const opacity = 1 - value + haze * value;
    const mixed = dim.map((low, k) => (low * (1 - value) + lit[k] * haze * value) / opacity);
    return [...mixed, 255 * opacity];
  }

  function isUniform(cells) {
    const total = cells.reduce((a, b) => a + b, 0);
    return cells.reduce((sum, w) => sum + Math.abs(w / total - 1 / count), 0) <= 0.04;
  }

  // The cover of one word: a pixel for each cell, or more of them with the cells' values between.
  function coverOf(line) {
    const largest = Math.max(...line) || 1;
    const cell = (i, j) => {
      const w = line[i * across + j];
      return shown(w) ? Math.min(w / largest, 1) : 0;
    };
    const factor = cover.smooth ? Math.max(1, Math.ceil(96 / Math.max(across, down))) : 1;
    const image = new ImageData(across * factor, down * factor);
    const split = (at, most) => {
      const place = Math.min(Math.max((at + 0.5) / factor - 0.5, 0), most - 1);
      const low = Math.min(Math.floor(place), Math.max(most - 2, 0));
      return [low, Math.min(low + 1, most - 1), place - low];
    };
    for (let y = 0; y < down * factor; y++) {
      const [top1, top2, v] = split(y, down);
      for (let x = 0; x < across * factor; x++) {
        const [left1, left2, u] = split(x, across);
        const upper = cell(top1, left1) * (1 - u) + cell(top1, left2) * u;
        const lower = cell(top2, left1) * (1 - u) + cell(top2, left2) * u;
        image.data.set(veil(upper * (1 - v) + lower * v), 4 * (y * across * factor + x));
      }
    }
    const canvas = document.createElement("canvas");
    canvas.width = image.width;
    canvas.height = image.height;
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  }

  // Where the grid lies on a canvas of a size
  const placeOf = (width, height) => [area[0] * width, area[1] * height, area[2] * width, area[3] * height];

  function paintCover(context, line, width, height) {
    const place = placeOf(width, height);
    context.save();
    context.globalAlpha = cover.opacity;
    context.imageSmoothingEnabled = cover.smooth;
    context.drawImage(coverOf(line), ...place);
    if (!whole) {
      context.beginPath();
      context.rect(0, 0, width, height);
      context.rect(...place);
      context.fillStyle = `rgb(${data.picture.veil.dim})`;
      context.fill("evenodd");
    }
    context.restore();
    paintBorders(context, width, height);
    const cells = line.slice(0, count);
    const best = cells.indexOf(Math.max(...cells));
    if (count > 1 && cells[best] > 0 && !isUniform(cells)) paintFrame(context, best, width, height);
  }

  function paintBorders(context, width, height) {
    const [x, y, w, h] = placeOf(width, height);
    if (Math.min(w / across, h / down) < 4) return;
    for (const [style, thickness] of [["rgb(0 0 0 / .2)", 1.4], ["rgb(255 255 255 / .4)", 0.6]]) {
      context.beginPath();
      for (let j = 1; j < across; j++) { context.moveTo(x + (j * w) / across, y); context.lineTo(x + (j * w) / across, y + h); }
      for (let i = 1; i < down; i++) { context.moveTo(x, y + (i * h) / down); context.lineTo(x + w, y + (i * h) / down); }
      context.strokeStyle = style;
      context.lineWidth = thickness;
      context.stroke();
    }
  }

  function paintFrame(context, index, width, height) {
    const [left, top, wide, tall] = placeOf(width, height), w = wide / across, h = tall / down;
    const x = left + (index % across) * w, y = top + Math.floor(index / across) * h;
    for (const [style, thickness] of [["rgb(0 0 0 / .75)", 3.4], ["#fff", 1.8]]) {
      context.strokeStyle = style;
      context.lineWidth = thickness;
      context.strokeRect(x + 1, y + 1, Math.max(w - 2, 1), Math.max(h - 2, 1));
    }
  }

  // A canvas of a size on the page, sharp on fine screens
  function prepare(canvas, width, height) {
    const scale = Math.min(devicePixelRatio || 1, 3);
    canvas.width = Math.max(Math.round(width * scale), 1);
    canvas.height = Math.max(Math.round(height * scale), 1);
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    return context;
  }

  function fit(widest, tallest) {
    const scale = Math.min(widest / fullWidth, tallest / fullHeight);
    return [Math.max(fullWidth * scale, 12), Math.max(fullHeight * scale, 12)];
  }

  function draw() {
    stageSize = fit(Math.min(room().clientWidth, 820), Math.max(Math.min(innerHeight * 0.5, 520), 200));
    $("stage").style.width = `${stageSize[0]}px`;
    $("stage").style.height = `${stageSize[1]}px`;
    const size = `${down} × ${across}`;
    const grid = cover.smooth ? `Smoothed from a grid of ${size} cells: it shows no more than these.` : `Cells of a grid of ${size}.`;
    const part = whole ? "" : " What lies outside the grid was not read.";
    $("resolution").textContent = `${grid}${part} The frame is around the cell of most weight.`;
    const verdict = view().verdicts[state.map] || "";
    $("verdict").textContent = verdict;
    $("verdict").hidden = !verdict;
    $("panels").hidden = Boolean(verdict);
    drawScale();
    if (!verdict) drawPanels();
  }

  function drawScale() {
    const box = $("cover").firstChild || $("cover").appendChild(document.createElement("canvas"));
    const context = prepare(box, 160, 10);
    for (let x = 0; x < 160; x++) {
      const [r, g, b, a] = veil(x / 159);
      context.fillStyle = `rgb(${r} ${g} ${b} / ${(a / 255) * cover.opacity})`;
      context.fillRect(x, 0, 1, 10);
    }
  }

  function makePanels() {
    panelsOf = view();
    $("panels").textContent = "";
    $("panels").dir = view().written.direction;
    const kept = tokens("written").map((token, index) => ({ token, index })).filter(({ token }) => !token.mark);
    panels = kept.slice(0, mostPanels).map(({ token, index }) => {
      const box = document.createElement("div"), canvas = document.createElement("canvas"), label = document.createElement("span");
      box.className = "panel";
      box.dataset.index = index;
      label.dir = "auto";
      label.textContent = token.text;
      box.append(canvas, label);
      $("panels").append(box);
      return { box, canvas, index };
    });
  }

  function drawPanels() {
    if (panelsOf !== view()) makePanels();
    if (!photo.complete || !photo.naturalWidth) return;
    const side = matchMedia("(max-width: 480px)").matches ? 90 : 124;
    const [width, height] = fit(side, side);
    for (const { canvas, index } of panels) {
      const context = prepare(canvas, width, height);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      context.drawImage(photo, 0, 0, width, height);
      paintCover(context, weights[index], width, height);
    }
  }

  function mark(side, index, cell) {
    const context = prepare($("veil"), ...stageSize);
    for (const panel of panels) panel.box.classList.toggle("chosen", side === "written" && panel.index === index);
    $("caption").textContent = data.picture.name || "the picture";
    if (side === "read") {
      paintBorders(context, ...stageSize);
      if (index < count) paintFrame(context, index, ...stageSize);
    } else if (side === "written") {
      paintCover(context, weights[index], ...stageSize);
      const aside = sentinel ? ` · not looking ${format(weights[index][count])}` : "";
      $("caption").textContent = `\u2068${tokens("written")[index].text}\u2069${aside}`;
      if (cell >= 0) paintFrame(context, cell, ...stageSize);
    }
  }

  function cellAt(event) {
    const box = $("stage").getBoundingClientRect();
    const j = Math.floor((((event.clientX - box.left) / box.width - area[0]) / area[2]) * across);
    const i = Math.floor((((event.clientY - box.top) / box.height - area[1]) / area[3]) * down);
    return i < 0 || j < 0 || i >= down || j >= across ? -1 : i * across + j;
  }

  function stop() {
    clearInterval(timer);
    timer = 0;
    $("play").textContent = "Play";
    $("play").setAttribute("aria-pressed", "false");
  }

  function play() {
    const spoken = tokens("written").map((_, index) => index).filter((index) => !tokens("written")[index].mark);
    let at = 0;
    const next = () => {
      if (at < spoken.length && !state.pinned) choose("written", spoken[at++]);
      else stop();
    };
    state.pinned = false;
    $("play").textContent = "Stop";
    $("play").setAttribute("aria-pressed", "true");
    timer = setInterval(next, 500);
    next();
  }

  function listenStage() {
    const stage = $("stage");
    let last = -1;
    stage.addEventListener("pointermove", (event) => {
      const cell = cellAt(event);
      if (cell < 0 || cell === last || timer) return;
      last = cell;
      if (!state.pinned) choose("read", cell);
      else if (state.side === "written") choose("written", state.index, cell);
    });
    stage.addEventListener("pointerleave", () => {
      last = -1;
      if (timer) return;
      if (state.pinned) choose(state.side, state.index);
      else choose(null, -1);
    });
    stage.addEventListener("click", (event) => { if (cellAt(event) >= 0) pin("read", cellAt(event)); });
  }

  function listenPanels() {
    const indexOf = (event) => Number(event.target.closest(".panel")?.dataset.index ?? -1);
    $("panels").addEventListener("pointerover", (event) => {
      if (indexOf(event) >= 0 && event.pointerType !== "touch" && !state.pinned && !timer) choose("written", indexOf(event));
    });
    $("panels").addEventListener("pointerleave", () => { if (!state.pinned && !timer) choose(null, -1); });
    $("panels").addEventListener("click", (event) => { if (indexOf(event) >= 0) pin("written", indexOf(event)); });
  }

  function listenView() {
    photo.addEventListener("load", refresh);
    photo.alt = data.picture.name || "the picture";
    photo.src = data.picture.source;
    $("veil").setAttribute("aria-label", `Where the chosen ${data.unit} looked, on a grid of ${down} by ${across} cells; the line above says it in words`);
    listenStage();
    listenPanels();
    $("play").addEventListener("click", () => { if (timer) stop(); else play(); });
    $("style").addEventListener("change", (event) => { cover.smooth = event.target.value === "smooth"; refresh(); });
    $("opacity").addEventListener("input", (event) => {
      cover.opacity = event.target.value / 100;
      $("opacity-value").textContent = `${event.target.value}%`;
      refresh();
    });
    document.addEventListener("keydown", (event) => { if (event.key === "Escape" && timer) stop(); });
  }
