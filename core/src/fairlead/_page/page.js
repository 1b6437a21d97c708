"use strict";
// A graph is drawn as nested boxes. Each open group is laid out by dagre on its own; an edge that crosses the border of
// a group passes it at a port, so that however many nodes there are, no single layout is large.
(() => {
const { graphs, backend } = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const canvas = $("canvas"), ctx = canvas.getContext("2d");
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif';
const PAD = 14, HEADER = 24, MANY = 400, MOST = 1200;
const PALETTE = ["#3b82c4", "#d97706", "#2f9e6e", "#a855c7", "#c2434b", "#0d9aa8", "#8a7a2c", "#6b6fd3", "#b85c9e", "#5f7f3a"];
const GREY = "#8b969e";

const state = { graph: 0, open: new Set([0]), boxes: [], edges: [], view: { x: 0, y: 0, k: 1 }, selected: null, over: null, colour: "dtype", only: null, size: { w: 0, h: 0 } };

// ---- the model -----------------------------------------------------------------------------------------------------

const models = graphs.map(view => {
  const groups = view.groups.map((g, id) => ({ ...g, key: "g" + id, members: [], colours: {} }));
  const items = view.items.map((item, id) => ({ sources: [], weights: [], type: "", path: "", line: "", dtype: "", verdict: "", elements: 0, ...item, key: "i" + id, users: [] }));
  groups.forEach(g => { if (g.parent >= 0) groups[g.parent].members.push(g); });
  items.forEach(item => groups[item.group].members.push(item));
  items.forEach((item, id) => item.sources.forEach(([from, type]) => items[from].users.push([id, type])));
  const above = groups.map(() => []);
  groups.forEach((g, id) => { above[id] = g.parent < 0 ? [0] : [...above[g.parent], id]; });
  groups.forEach((g, id) => { g.above = above[id]; });
  items.forEach(item => { item.above = above[item.group]; });
  return { view, groups, items, cache: new Map(), counts: {} };
});
const model = () => models[state.graph];
const thing = key => (key[0] === "g" ? model().groups : model().items)[+key.slice(1)];

const MODES = [["dtype", "element type"], ["op", "op"], ["module", "module"], ...(backend ? [["verdict", "what " + backend + " says"]] : [])];
const category = {
  dtype: item => item.dtype || "none",
  op: item => (item.kind === "op" ? item.label : item.kind === "in" ? "input" : "output"),
  module: item => (item.above.length > 1 ? model().groups[item.above[1]].label : "top"),
  verdict: item => item.verdict || "not asked",
};
const VERDICTS = { accepted: "#2f9e6e", decomposed: "#d9a13a", declined: "#d1495b", "not asked": GREY };

function palette() {
  const counts = new Map();
  const counted = state.colour === "verdict" ? model().items.filter(item => item.kind === "op") : model().items;
  for (const item of counted) { const c = category[state.colour](item); counts.set(c, (counts.get(c) || 0) + 1); }
  const ordered = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const colours = new Map();
  ordered.forEach(([name], i) => colours.set(name, state.colour === "verdict" ? VERDICTS[name] || GREY : PALETTE[i] || GREY));
  for (const g of model().groups) g.colours = {};
  for (const item of counted) {
    const c = category[state.colour](item);
    for (const id of item.above) { const g = model().groups[id]; g.colours[c] = (g.colours[c] || 0) + 1; }
  }
  state.palette = { ordered, colours };
}
const colourOf = item => state.palette.colours.get(category[state.colour](item)) || GREY;

// ---- layout --------------------------------------------------------------------------------------------------------

const measured = new Map();
function width(text, font) {
  const key = font + text;
  if (!measured.has(key)) { ctx.font = font; measured.set(key, ctx.measureText(text).width); }
  return measured.get(key);
}
const clip = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
const bold = `600 12px ${FONT}`, plain = `10.5px ${FONT}`;

function small(member) {
  const label = clip(member.label || "graph", 34);
  const second = member.key[0] === "g" ? `${member.items} items` : clip(member.type, 40);
  const w = Math.max(width(label, bold), width(second, plain)) + (member.key[0] === "g" ? 40 : 22);
  return { w: Math.max(64, Math.ceil(w)), h: member.key[0] === "g" ? 46 : second ? 38 : 26, label, second };
}

// what stands for an item: itself, or the outermost closed group around it
function shownFor(item) {
  for (const id of item.above) if (!state.open.has(id)) return model().groups[id];
  return item;
}
// the open groups around a shown thing, outermost first
const around = shown => (shown.key[0] === "g" ? shown.above.slice(0, -1) : shown.above);

function levels() {
  const levels = new Map();
  const add = (group, from, to, source, target, count) => {
    if (!levels.has(group)) levels.set(group, new Map());
    const level = levels.get(group), name = from + ">" + to + ">" + source;
    if (level.has(name)) { level.get(name).count += count; level.get(name).targets.add(target); }
    else level.set(name, { from, to, source, targets: new Set([target]), count });
  };
  for (const item of model().items) {
    const to = shownFor(item);
    for (const [id] of item.sources) {
      const from = shownFor(model().items[id]);
      if (from === to) continue;
      const a = around(from), b = around(to);
      let common = 0;
      while (common < a.length && common < b.length && a[common] === b[common]) common++;
      const member = (list, i, shown) => (i < list.length ? "g" + list[i] : shown.key);
      add(a[common - 1], member(a, common, from), member(b, common, to), from.key, to.key, 1);
      for (let i = common; i < a.length; i++) add(a[i], member(a, i + 1, from), "out:" + from.key, from.key, to.key, 1);
      for (let i = common; i < b.length; i++) add(b[i], "in:" + from.key, member(b, i + 1, to), from.key, to.key, 1);
    }
  }
  return levels;
}

function arrange(group, all) {
  const members = group.members.map(m => {
    if (m.key[0] === "g" && state.open.has(+m.key.slice(1))) {
      const inner = arrange(m, all);
      return { member: m, inner, w: Math.max(inner.w + 2 * PAD, width(m.label, bold) + 60), h: inner.h + 2 * PAD + HEADER };
    }
    return { member: m, ...small(m) };
  });
  const edges = [...(all.get(+group.key.slice(1)) || new Map()).values()];
  const signature = JSON.stringify([members.map(m => [m.member.key, m.w, m.h]), edges.map(e => [e.from, e.to])]);
  let placed = model().cache.get(signature);
  if (!placed) { placed = place(members, edges); model().cache.set(signature, placed); }
  return { ...placed, members: members.map(m => ({ ...m, ...placed.at.get(m.member.key) })), edges };
}

function place(members, edges) {
  const g = new dagre.graphlib.Graph({ multigraph: false }).setGraph({ rankdir: "TB", nodesep: 20, edgesep: 10, ranksep: 30, marginx: 0, marginy: 0 });
  g.setDefaultEdgeLabel(() => ({}));
  members.forEach(m => g.setNode(m.member.key, { width: m.w, height: m.h }));
  const ports = new Set(edges.flatMap(e => [e.from, e.to]).filter(k => k.includes(":")));
  for (const port of ports) {
    g.setNode(port, { width: 2, height: 0 });
    // ports stay at the border: a heavy edge ties each to a line above or below everything
    if (port.startsWith("in:")) { g.setNode("top", { width: 0, height: 0 }); g.setEdge("top", port, { weight: 6, minlen: 1 }); }
    else { g.setNode("bottom", { width: 0, height: 0 }); g.setEdge(port, "bottom", { weight: 6, minlen: 1 }); }
  }
  for (const e of edges) {
    const known = g.edge(e.from, e.to);
    g.setEdge(e.from, e.to, { weight: Math.min(4, (known ? known.weight || 1 : 0) + 1), minlen: 1 });
  }
  dagre.layout(g);
  let left = Infinity, top = Infinity, right = -Infinity, bottom = -Infinity;
  const see = (x, y) => { left = Math.min(left, x); right = Math.max(right, x); top = Math.min(top, y); bottom = Math.max(bottom, y); };
  members.forEach(m => { const n = g.node(m.member.key); see(n.x - m.w / 2, n.y - m.h / 2); see(n.x + m.w / 2, n.y + m.h / 2); });
  const lines = new Map();
  g.edges().forEach(({ v, w }) => {
    if (v === "top" || w === "bottom") return;
    const points = g.edge(v, w).points.map(p => [p.x, p.y]);
    points.forEach(([x]) => see(x, (top + bottom) / 2 || 0));
    lines.set(v + ">" + w, points);
  });
  if (!members.length) return { w: 0, h: 0, at: new Map(), lines, ports: new Map() };
  const at = new Map(members.map(m => { const n = g.node(m.member.key); return [m.member.key, { x: n.x - m.w / 2 - left, y: n.y - m.h / 2 - top }]; }));
  const where = new Map([...ports].map(p => [p, Math.min(Math.max(g.node(p).x - left, 0), right - left)]));
  for (const points of lines.values()) for (const p of points) { p[0] -= left; p[1] = Math.min(Math.max(p[1] - top, -8), bottom - top + 8); }
  return { w: right - left, h: bottom - top, at, lines, ports: where };
}

function flatten() {
  const boxes = [], edges = [], index = new Map();
  const walk = (laid, x0, y0, frame) => {
    for (const m of laid.members) {
      const box = { member: m.member, x: x0 + m.x, y: y0 + m.y, w: m.w, h: m.h, label: m.label, second: m.second, open: !!m.inner };
      boxes.push(box);
      index.set(m.member.key, box);
      if (m.inner) { box.inner = m.inner; box.offset = (m.w - m.inner.w) / 2; walk(m.inner, box.x + box.offset, box.y + HEADER + PAD, box); }
    }
    for (const e of laid.edges) {
      const points = laid.lines.get(e.from + ">" + e.to).map(([x, y]) => [x + x0, y + y0]);
      const from = index.get(e.from), to = index.get(e.to);
      if (!from) points[0] = [x0 + laid.ports.get(e.from), frame.y];
      else if (from.open) points[0] = [from.x + from.offset + (from.inner.ports.get("out:" + e.source) ?? from.w / 2), from.y + from.h];
      if (!to) points[points.length - 1] = [x0 + laid.ports.get(e.to), frame.y + frame.h];
      else if (to.open) points[points.length - 1] = [to.x + to.offset + (to.inner.ports.get("in:" + e.source) ?? to.w / 2), to.y];
      const xs = points.map(p => p[0]), ys = points.map(p => p[1]);
      edges.push({ points, source: e.source, targets: e.targets, count: e.count, arrow: to && !to.open, box: [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)] });
    }
  };
  const laid = arrange(model().groups[0], levels());
  walk(laid, 0, 0, { x: 0, y: 0, w: laid.w, h: laid.h });
  Object.assign(state, { boxes, edges, index, size: { w: laid.w, h: laid.h } });
  const drawn = boxes.filter(b => !b.open).length;
  $("status").textContent = `${model().view.kind} graph, ${model().view.nodes} nodes; ${drawn} boxes drawn`;
  document.documentElement.dataset.boxes = drawn;
}

// ---- drawing -------------------------------------------------------------------------------------------------------

let css = {};
function readStyle() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["page", "card", "ink", "soft", "faint", "line", "main", "group"]) css[name] = style.getPropertyValue("--" + name).trim();
}

let asked = false;
function draw() { if (!asked) { asked = true; requestAnimationFrame(paint); } }

function paint() {
  asked = false;
  const ratio = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) { canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio); }
  const { x, y, k } = state.view;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, w, h);
  ctx.setTransform(ratio * k, 0, 0, ratio * k, ratio * x, ratio * y);
  const seen = [-x / k, -y / k, (w - x) / k, (h - y) / k];
  const inside = (a, b, c, d) => c >= seen[0] && a <= seen[2] && d >= seen[1] && b <= seen[3];
  const visible = state.boxes.filter(b => inside(b.x, b.y, b.x + b.w, b.y + b.h));
  visible.filter(b => b.open).forEach(b => openBox(b, k));
  const chosen = state.selected;
  const lit = [];
  for (const e of state.edges) {
    if (!inside(...e.box)) continue;
    if (chosen && (e.source === chosen || e.targets.has(chosen))) lit.push(e); else line(e, k, false);
  }
  visible.filter(b => !b.open).forEach(b => closedBox(b, k));
  lit.forEach(e => line(e, k, true));
}

function rounded(x, y, w, h, r) { ctx.beginPath(); ctx.roundRect(x, y, w, h, Math.min(r, w / 2, h / 2)); }

function outline(box, k) {
  const key = box.member.key;
  ctx.lineWidth = (key === state.selected ? 2.5 : 1) / Math.min(1, Math.max(k, .3));
  ctx.strokeStyle = key === state.selected ? css.main : key === state.over ? css.soft : css.faint;
  ctx.stroke();
}

function openBox(box, k) {
  rounded(box.x, box.y, box.w, box.h, 8);
  ctx.fillStyle = box.member.above.length % 2 ? css.page : css.group;
  ctx.fill();
  outline(box, k);
  if (k * 12 < 4) return;
  ctx.fillStyle = css.soft; ctx.font = bold; ctx.textAlign = "left"; ctx.textBaseline = "middle";
  ctx.fillText("− " + clip(box.member.label, Math.floor(box.w / 7)), box.x + 10, box.y + HEADER / 2 + 2);
}

function closedBox(box, k) {
  const { member } = box, isGroup = member.key[0] === "g";
  const faded = state.only !== null && !(isGroup ? member.colours[state.only] : category[state.colour](member) === state.only);
  ctx.globalAlpha = faded ? 0.22 : 1;
  rounded(box.x, box.y, box.w, box.h, isGroup ? 8 : member.kind === "op" ? 5 : box.h / 2);
  ctx.fillStyle = css.card; ctx.fill();
  ctx.save(); ctx.clip();
  if (isGroup) stripes(box); else { ctx.fillStyle = colourOf(member); ctx.globalAlpha *= member.kind === "op" ? 1 : .55; ctx.fillRect(box.x, box.y, 5, box.h); }
  ctx.restore();
  ctx.globalAlpha = faded ? 0.22 : 1;
  rounded(box.x, box.y, box.w, box.h, isGroup ? 8 : member.kind === "op" ? 5 : box.h / 2);
  outline(box, k);
  if (k * 11 >= 3.5) {
    const x = box.x + box.w / 2 + (isGroup ? 0 : 2);
    ctx.textAlign = "center"; ctx.textBaseline = "middle"; ctx.fillStyle = css.ink; ctx.font = bold;
    ctx.fillText((isGroup ? "+ " : "") + box.label, x, box.y + (box.second ? 13 : box.h / 2));
    ctx.fillStyle = css.soft; ctx.font = plain;
    if (box.second) ctx.fillText(box.second, x, box.y + 28);
  }
  ctx.globalAlpha = 1;
}

function stripes(box) {
  const total = Object.values(box.member.colours).reduce((sum, n) => sum + n, 0) || 1;
  let x = box.x;
  for (const [name] of state.palette.ordered) {
    const part = (box.member.colours[name] || 0) / total * box.w;
    if (!part) continue;
    ctx.fillStyle = state.palette.colours.get(name);
    ctx.fillRect(x, box.y + box.h - 6, part + .5, 6);
    x += part;
  }
}

function line(edge, k, lit) {
  const points = edge.points, last = points.length - 1;
  ctx.strokeStyle = ctx.fillStyle = lit ? css.main : css.faint;
  ctx.globalAlpha = lit ? 1 : state.selected ? .45 : .9;
  ctx.lineWidth = (lit ? 1.8 : 1.1) * Math.min(3, 1 + Math.log2(edge.count) * .3) / Math.max(.45, Math.min(1, k));
  ctx.beginPath(); ctx.moveTo(...points[0]);
  for (let i = 1; i < last; i++) {
    const [x, y] = points[i], [x2, y2] = points[i + 1];
    ctx.quadraticCurveTo(x, y, i + 1 === last ? x2 : (x + x2) / 2, i + 1 === last ? y2 : (y + y2) / 2);
  }
  if (last === 1) ctx.lineTo(...points[1]);
  ctx.stroke();
  if (edge.arrow && k > .25) {
    const [x, y] = points[last], [px, py] = points[last - 1], a = Math.atan2(y - py, x - px);
    ctx.beginPath(); ctx.moveTo(x, y);
    ctx.lineTo(x - 7 * Math.cos(a - .4), y - 7 * Math.sin(a - .4)); ctx.lineTo(x - 7 * Math.cos(a + .4), y - 7 * Math.sin(a + .4));
    ctx.fill();
  }
  ctx.globalAlpha = 1;
}

// ---- moving about --------------------------------------------------------------------------------------------------

function fit() {
  const w = canvas.clientWidth, h = canvas.clientHeight, { w: gw, h: gh } = state.size;
  const k = Math.min(1.4, (w - 60) / Math.max(gw, 1), (h - 90) / Math.max(gh, 1));
  state.view = { k, x: (w - gw * k) / 2, y: (h - gh * k) / 2 - 6 };
  draw();
}

// all of a wide graph may be too small to read: then begin at its top, in a size that can be read
function start() {
  fit();
  if (state.view.k >= .45) return;
  state.view = { k: .6, x: canvas.clientWidth / 2 - state.size.w / 2 * .6, y: 46 };
}

function zoom(factor, cx, cy) {
  const v = state.view, k = Math.min(4, Math.max(.01, v.k * factor));
  state.view = { k, x: cx - (cx - v.x) * k / v.k, y: cy - (cy - v.y) * k / v.k };
  draw();
}

function centre(key) {
  const box = state.index.get(key), v = state.view;
  if (!box) return;
  const k = Math.max(v.k, .8);
  state.view = { k, x: canvas.clientWidth / 2 - (box.x + box.w / 2) * k, y: canvas.clientHeight / 2 - (box.y + Math.min(box.h, 300) / 2) * k };
}

function relay(anchor) {
  const before = anchor && state.index.get(anchor);
  flatten();
  const after = anchor && state.index.get(anchor);
  if (before && after) {
    state.view.x += (before.x + before.w / 2 - after.x - after.w / 2) * state.view.k;
    state.view.y += (before.y - after.y) * state.view.k;
  }
  draw();
}

function toggle(key) {
  const id = +key.slice(1);
  if (state.open.has(id)) state.open.delete(id); else state.open.add(id);
  relay(key);
}

// unfolds what is in sight, so that the work and the result stay in proportion to the screen
function unfoldLevel() {
  const { x, y, k } = state.view, w = canvas.clientWidth, h = canvas.clientHeight;
  const middle = b => Math.hypot((b.x + b.w / 2) * k + x - w / 2, (b.y + b.h / 2) * k + y - h / 2);
  const sight = state.boxes.filter(b => b.member.key[0] === "g" && !b.open && (b.x + b.w) * k + x > 0 && b.x * k + x < w && (b.y + b.h) * k + y > 0 && b.y * k + y < h);
  sight.sort((a, b) => middle(a) - middle(b));
  let boxes = state.boxes.length;
  for (const b of sight) {
    boxes += b.member.members.length;
    if (boxes > MOST && b !== sight[0]) break;
    state.open.add(+b.member.key.slice(1));
  }
  if (sight.length) relay(sight[0].member.key);
}

function reveal(key) {
  thing(key).above.slice(0, key[0] === "g" ? -1 : undefined).forEach(id => state.open.add(id));
  flatten(); select(key); centre(key); draw();
}

function select(key) { state.selected = key; details(); draw(); }

function at(event) {
  const r = canvas.getBoundingClientRect(), { x, y, k } = state.view;
  const px = (event.clientX - r.left - x) / k, py = (event.clientY - r.top - y) / k;
  for (let i = state.boxes.length - 1; i >= 0; i--) {
    const b = state.boxes[i];
    if (px >= b.x && px <= b.x + b.w && py >= b.y && py <= b.y + b.h) return { ...b, header: b.open && py < b.y + HEADER };
  }
  return null;
}

const fingers = new Map();
let moved = false, spread = 0;
canvas.addEventListener("pointerdown", e => {
  canvas.setPointerCapture(e.pointerId); fingers.set(e.pointerId, [e.clientX, e.clientY]); moved = false; spread = 0;
  canvas.classList.add("drag");
});
canvas.addEventListener("pointermove", e => {
  const last = fingers.get(e.pointerId);
  if (!last) {
    const hit = at(e), key = hit && (!hit.open || hit.header) ? hit.member.key : null;
    if (key !== state.over) { state.over = key; canvas.classList.toggle("over", !!key); draw(); }
    return;
  }
  fingers.set(e.pointerId, [e.clientX, e.clientY]);
  const all = [...fingers.values()], r = canvas.getBoundingClientRect();
  if (all.length === 2) {
    const now = Math.hypot(all[0][0] - all[1][0], all[0][1] - all[1][1]);
    if (spread) zoom(now / spread, (all[0][0] + all[1][0]) / 2 - r.left, (all[0][1] + all[1][1]) / 2 - r.top);
    spread = now; moved = true;
    return;
  }
  if (Math.hypot(e.clientX - last[0], e.clientY - last[1]) > 0) moved = moved || Math.abs(e.movementX) + Math.abs(e.movementY) > 2;
  state.view.x += e.clientX - last[0]; state.view.y += e.clientY - last[1];
  draw();
});
for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, e => {
  const had = fingers.delete(e.pointerId);
  canvas.classList.remove("drag");
  if (!had || moved || name === "pointercancel") return;
  const hit = at(e);
  select(hit ? hit.member.key : null);
  if (hit && hit.member.key[0] === "g" && (!hit.open || hit.header)) toggle(hit.member.key);
});
canvas.addEventListener("wheel", e => {
  e.preventDefault();
  const r = canvas.getBoundingClientRect();
  zoom(Math.exp(-e.deltaY * (e.deltaMode ? .05 : .0015)), e.clientX - r.left, e.clientY - r.top);
}, { passive: false });

// ---- details -------------------------------------------------------------------------------------------------------

function element(tag, text, className) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

function list(title, rows) {
  if (!rows.length) return [];
  const ul = element("ul");
  for (const [text, note, key] of rows.slice(0, MANY)) {
    const li = element("li"), label = element(key ? "a" : "span", text);
    if (key) { label.tabIndex = 0; label.onclick = () => reveal(key); label.onkeydown = e => { if (e.key === "Enter") reveal(key); }; }
    li.append(label);
    if (note) li.append(element("small", note));
    ul.append(li);
  }
  if (rows.length > MANY) ul.append(element("li", `and ${rows.length - MANY} more`));
  return [element("h3", title), ul];
}

const number = n => n.toLocaleString("en");

function details() {
  const box = $("details"), key = state.selected || "g0", what = thing(key);
  box.replaceChildren(...(key[0] === "g" ? groupDetails(what) : itemDetails(what)));
  box.scrollTop = 0;
}

function groupDetails(group) {
  const id = +group.key.slice(1), inside = model().items.filter(item => item.above.includes(id));
  const ops = new Map();
  inside.filter(i => i.kind === "op").forEach(i => ops.set(i.label, (ops.get(i.label) || 0) + 1));
  const elements = inside.reduce((sum, item) => sum + item.elements, 0);
  const path = group.above.slice(1).map(a => model().groups[a].label).join(" › ");
  const parts = [element("h2", id ? group.label : `graph ${model().view.name}`), element("p", id ? path : model().view.kind)];
  parts.push(element("p", `${number(inside.length)} items, ${number(elements)} elements of weights read`));
  if (!id) parts.push(...list("symbols", model().view.symbols.map(s => [s])));
  const declined = inside.filter(i => i.verdict === "declined");
  parts.push(...list(`declined by ${backend}`, declined.map(i => [i.label, i.reason, i.key])));
  parts.push(...list("ops", [...ops].sort((a, b) => b[1] - a[1]).map(([op, n]) => [op, "×" + n])));
  if (!id) parts.push(element("h3", "how to read this"), element("p", "Boxes with + unfold on a click. The wheel zooms, dragging moves. Colours say what the list at the bottom says; a click there fades the rest. Weights are not drawn: the details of a node name those that it reads."));
  return parts;
}

function itemDetails(item) {
  const parts = [element("h2", item.label), element("pre", item.text)];
  if (item.verdict) parts.push(element("p", `${backend}: ${item.verdict}${item.reason ? ", " + item.reason : ""}`, item.verdict));
  if (item.path) parts.push(element("h3", item.kind === "in" ? "role" : "module"), element("p", item.path));
  if (item.line) parts.push(element("h3", "source line"), element("p", item.line));
  const row = ([id, type]) => [model().items[id].label, type, "i" + id];
  return [...parts, ...list("reads", item.sources.map(row)), ...list("weights", item.weights.map(w => [w])), ...list("read by", item.users.map(row))];
}

function legend() {
  const shown = state.palette.ordered.slice(0, PALETTE.length + 2);
  $("legend").replaceChildren(...shown.map(([name, count]) => {
    const button = element("button"), dot = element("i");
    dot.style.background = state.palette.colours.get(name);
    button.append(dot, `${name} ${count}`);
    button.className = state.only === name ? "on" : "";
    button.onclick = () => { state.only = state.only === name ? null : name; legend(); draw(); };
    return button;
  }));
}

// ---- search --------------------------------------------------------------------------------------------------------

let hits = [], current = -1;
function search() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean), found = $("found");
  current = -1;
  hits = !words.length ? [] : [...model().groups.slice(1), ...model().items].filter(m => {
    const text = (m.key[0] === "g" ? m.above.slice(1).map(a => model().groups[a].label).join(".") : [m.text, m.label, m.path, m.line, m.weights.join(" ")].join(" ")).toLowerCase();
    return words.every(word => text.includes(word));
  });
  found.hidden = !words.length;
  found.replaceChildren(...hits.slice(0, 60).map(m => {
    const li = element("li", m.label);
    li.append(element("small", m.key[0] === "g" ? `group of ${m.items} items` : [m.type, m.path].filter(Boolean).join(" · ")));
    li.onmousedown = e => { e.preventDefault(); go(hits.indexOf(m)); found.hidden = true; };
    return li;
  }), element("li", hits.length > 60 ? `and ${hits.length - 60} more` : hits.length ? "" : "nothing found"));
  found.lastChild.className = "more";
  document.documentElement.dataset.found = hits.length;
}
function go(i) {
  if (!hits.length) return;
  current = (i + hits.length) % hits.length;
  [...$("found").children].forEach((li, n) => { li.classList.toggle("on", n === current); if (n === current) li.scrollIntoView({ block: "nearest" }); });
  reveal(hits[current].key);
}
$("search").addEventListener("input", search);
$("search").addEventListener("focus", () => { $("found").hidden = !$("search").value; });
$("search").addEventListener("blur", () => { $("found").hidden = true; });
$("search").addEventListener("keydown", e => {
  if (e.key === "Enter" || e.key === "ArrowDown") { e.preventDefault(); go(current + (e.shiftKey ? -1 : 1)); }
  if (e.key === "ArrowUp") { e.preventDefault(); go(current - 1); }
  if (e.key === "Escape") { $("search").blur(); canvas.focus(); }
});

// ---- the rest ------------------------------------------------------------------------------------------------------

function show(index) {
  Object.assign(state, { graph: index, open: new Set([0]), selected: null, only: null });
  // begin with as much unfolded as is easy to look at
  for (;;) {
    const closed = model().groups.filter((g, id) => !state.open.has(id) && g.above.slice(0, -1).every(a => state.open.has(a)));
    const boxes = [...state.open].reduce((n, id) => n + model().groups[id].members.length, 0);
    const next = closed.filter(g => boxes + g.members.length <= 40).sort((a, b) => b.items - a.items)[0];
    const alike = next && closed.some(g => g !== next && g.parent === next.parent && g.items === next.items);
    if (!next || alike) break;
    state.open.add(+next.key.slice(1));
  }
  palette(); legend(); flatten(); details(); start(); search();
}

graphs.forEach((g, i) => $("graph").append(new Option(`${i}: ${g.name} (${g.nodes} nodes)`, i)));
MODES.forEach(([mode, label]) => $("colour").append(new Option(label, mode)));
if (backend) state.colour = $("colour").value = "verdict";
$("graph").onchange = e => show(+e.target.value);
$("colour").onchange = e => { state.colour = e.target.value; state.only = null; palette(); legend(); draw(); };
$("fold").onclick = () => { state.open = new Set([0]); relay(); fit(); };
$("unfold").onclick = unfoldLevel;
$("fit").onclick = fit;
addEventListener("keydown", e => {
  if (e.target.matches("input, select, a")) return;
  const actions = { "/": () => { e.preventDefault(); $("search").focus(); }, f: fit, 0: $("fold").onclick, 1: unfoldLevel, Escape: () => select(null),
    "+": () => zoom(1.25, canvas.clientWidth / 2, canvas.clientHeight / 2), "-": () => zoom(.8, canvas.clientWidth / 2, canvas.clientHeight / 2) };
  if (actions[e.key] && !e.ctrlKey && !e.metaKey) actions[e.key]();
});
new ResizeObserver(draw).observe(canvas);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readStyle(); draw(); });
readStyle();
if (graphs.length) show(0);
})();
