// SPDX-License-Identifier: GPL-2.0
// The pages of `paqm-lab site`: filters, diagrams and runs side by side, from data.js and runs/*.js.
'use strict';

const COLOURS = ['#00796B', '#7B4FA3', '#D55E00', '#4C6FB0', '#A0651A', '#CC79A7', '#56B4E9', '#6E6E6E'];
// Student's t for 95 %, by degrees of freedom.
const T = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
  2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052,
  2.048, 2.045, 2.042];
const SHOWN = 200; // rows of the table
const data = window.PAQM;
const state = { filters: {}, figure: data.figures.find((name) => name.endsWith('.p95')) || data.figures[0],
  axis: data.axes.find((name) => name !== 'variant' && new Set(data.runs.map((run) => run[name])).size > 1)
    || data.axes[0], picked: [] };
const loaded = {};

const $ = (id) => document.getElementById(id);
const unique = (list) => [...new Set(list)];
const number = (v) => (v === null || v === undefined ? '–' : Number(v.toPrecision(4)).toString());
const colour = (variant) => COLOURS[data.variants.indexOf(variant) % COLOURS.length];

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function order(a, b) {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), 'en', { numeric: true });
}

function passing() {
  return data.runs.filter((run) => Object.entries(state.filters)
    .every(([name, value]) => value === '' || String(run[name]) === value));
}

function select(label, values, chosen, change) {
  const box = element('select', { onchange: (event) => { change(event.target.value); draw(); } });
  for (const [value, text] of values) {
    const option = element('option', { value }, text);
    option.selected = value === chosen;
    box.append(option);
  }
  return element('label', {}, label, box);
}

function controls() {
  const bar = $('filters');
  for (const name of data.axes) {
    const values = unique(data.runs.map((run) => run[name])).sort(order);
    if (values.length < 2) continue;
    const options = [['', 'all'], ...values.map((value) => [String(value), String(value)])];
    bar.append(select(name, options, '', (value) => { state.filters[name] = value; }));
  }
  const named = (list) => list.map((name) => [name, name]);
  $('choices').append(
    select('figure', named(data.figures), state.figure, (value) => { state.figure = value; }),
    select('against', named(data.axes), state.axis, (value) => { state.axis = value; }));
}

// Diagrams: one <svg> each, with lines {x: [], y: [], half: [], name, colour, steps}.

function ticks(low, high, log) {
  if (log) {
    const found = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e += 1) {
      for (const m of [1, 2, 5]) {
        const value = Number((m * 10 ** e).toPrecision(3));
        if (value >= low && value <= high) found.push(value);
      }
    }
    return found;
  }
  const rough = (high - low) / 5 || 1;
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * ten).find((s) => s >= rough);
  const found = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step / 1e6; v += step) {
    found.push(Number(v.toPrecision(6)));
  }
  return found;
}

function diagram(title, xname, yname, lines, options = {}) {
  const width = 620, height = 330, left = 62, right = 12, top = 12, bottom = 44;
  const some = lines.filter((line) => line.x.length);
  if (!some.length) return element('p', { class: 'note' }, `${title}: no run here has this.`);
  const finite = (list) => list.filter((v) => v !== null && Number.isFinite(v));
  const half = (line, i) => (line.half ? line.half[i] || 0 : 0);
  const xs = finite(some.flatMap((line) => line.x)).filter((x) => !options.log || x > 0);
  const ys = finite(some.flatMap((line) => line.y.flatMap((y, i) => (y === null ? []
    : [y - half(line, i), y + half(line, i)]))));
  let [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  if (x0 === x1) [x0, x1] = options.log ? [x0 / 2, x1 * 2] : [x0 - 1, x1 + 1];
  const pad = options.places ? 0.4 : 0;
  [x0, x1] = [x0 - pad, x1 + pad];
  let [y0, y1] = [Math.min(0, ...ys), Math.max(...ys)];
  if (y0 === y1) y1 = y0 + 1;
  const scale = (v, low, high) => (options.log && low === x0 && high === x1
    ? Math.log(Math.max(v, low) / low) / Math.log(high / low) : (v - low) / (high - low));
  const X = (v) => left + scale(v, x0, x1) * (width - left - right);
  const Y = (v) => height - bottom - ((v - y0) / (y1 - y0)) * (height - top - bottom);
  const out = [];
  const escape = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const text = (x, y, words, anchor, more = '') => out.push(
    `<text x="${x}" y="${y}" text-anchor="${anchor}" ${more}>${escape(words)}</text>`);
  for (const v of ticks(y0, y1)) {
    out.push(`<line x1="${left}" x2="${width - right}" y1="${Y(v)}" y2="${Y(v)}" class="grid"/>`);
    text(left - 6, Y(v) + 4, v, 'end');
  }
  const places = options.places ? options.places.map((name, i) => [i, name])
    : ticks(x0, x1, options.log).map((v) => [v, v]);
  for (const [v, name] of places) text(X(v), height - bottom + 16, name, 'middle');
  text((left + width) / 2, height - 8, xname, 'middle');
  text(14, height / 2, yname, 'middle', `transform="rotate(-90 14 ${height / 2})"`);
  for (const line of some) {
    let path = '';
    line.x.forEach((x, i) => {
      if (line.y[i] === null) return;
      const at = `${X(x).toFixed(1)},${Y(line.y[i]).toFixed(1)}`;
      path += path === '' ? `M${at}` : `${line.steps ? `H${X(x).toFixed(1)}` : ''}L${at}`;
      if (line.half) {
        const [high, low] = [Y(line.y[i] + half(line, i)), Y(line.y[i] - half(line, i))];
        out.push(`<line x1="${X(x)}" x2="${X(x)}" y1="${high}" y2="${low}" stroke="${line.colour}"/>`);
        out.push(`<circle cx="${X(x)}" cy="${Y(line.y[i])}" r="3" fill="${line.colour}"/>`);
      }
    });
    out.push(`<path d="${path}" fill="none" stroke="${line.colour}" stroke-width="1.5"/>`);
  }
  const figure = element('figure', {}, element('figcaption', {}, title));
  const svg = document.createElement('div');
  svg.innerHTML = `<svg viewBox="0 0 ${width} ${height}">${out.join('')}</svg>`;
  const legend = element('div', { class: 'legend' });
  const names = new Map(some.map((line) => [line.name, line.colour]));
  for (const [name, shade] of names) {
    legend.append(element('span', {}, element('i', { style: `background:${shade}` }), name));
  }
  figure.append(svg, legend);
  return figure;
}

function values(run) {
  const row = data.values[state.figure];
  return row[run.index];
}

function meanAndHalf(list) {
  const mean = list.reduce((a, b) => a + b, 0) / list.length;
  if (list.length < 2) return [mean, 0];
  const variance = list.reduce((a, b) => a + (b - mean) ** 2, 0) / (list.length - 1);
  return [mean, (T[list.length - 2] || 1.96) * Math.sqrt(variance / list.length)];
}

function diagrams(runs) {
  const variants = data.variants.filter((name) => runs.some((run) => run.variant === name));
  const places = unique(runs.map((run) => run[state.axis])).sort(order);
  const numeric = places.every((place) => typeof place === 'number');
  const known = (some) => some.map(values).filter((v) => v !== null && v !== undefined);
  // A run without a number has an infinite one, or it was not taken: no mean of the others then.
  const label = (name) => {
    const some = runs.filter((run) => run.variant === name);
    const lacking = some.length - known(some).length;
    return lacking ? `${name} (no number in ${lacking} of ${some.length} runs)` : name;
  };
  const lines = variants.map((name) => {
    const line = { name: label(name), colour: colour(name), x: [], y: [], half: [] };
    places.forEach((place, i) => {
      const some = runs.filter((run) => run.variant === name && run[state.axis] === place);
      const found = known(some);
      if (!found.length || found.length < some.length) return;
      const [mean, half] = meanAndHalf(found);
      line.x.push(numeric ? place : i);
      line.y.push(mean);
      line.half.push(half);
    });
    return line;
  });
  const spread = variants.map((name) => {
    const some = runs.filter((run) => run.variant === name);
    const found = known(some).sort((a, b) => a - b);
    return { name: label(name), colour: colour(name), steps: true, x: found,
      y: found.map((_, i) => (100 * (i + 1)) / some.length) };
  });
  $('diagrams').replaceChildren(
    diagram(`${state.figure} against ${state.axis}: mean and 95 % interval`, state.axis, state.figure,
      lines, numeric ? {} : { places }),
    diagram(`${state.figure}: distribution over these runs`, state.figure, 'runs that have less, %',
      spread));
}

function table(runs) {
  const head = ['', 'run', ...data.axes, state.figure];
  const body = runs.slice(0, SHOWN).map((run) => {
    const box = element('input', { type: 'checkbox', 'aria-label': `compare ${run.key}`,
      onchange: () => pick(run.key) });
    box.checked = state.picked.includes(run.key);
    return element('tr', {}, element('td', {}, box), element('td', {}, element('code', {}, run.key)),
      ...data.axes.map((name) => element('td', {}, String(run[name] ?? '–'))),
      element('td', { class: 'n' }, number(values(run))));
  });
  $('count').textContent = `${runs.length} of ${data.runs.length} runs`
    + `${runs.length > SHOWN ? `, the first ${SHOWN} are shown` : ''}; tick some to see them side by side`;
  $('runs').replaceChildren(
    element('thead', {}, element('tr', {}, ...head.map((name) => element('th', {}, name)))),
    element('tbody', {}, ...body));
}

// A page opened as a file may load scripts, but not fetch: a run's series are a script each.
window.PAQM_RUN = (key, run) => { loaded[key] = run; sideBySide(); };

function pick(key) {
  state.picked = state.picked.includes(key) ? state.picked.filter((one) => one !== key)
    : [...state.picked, key];
  if (!(key in loaded)) document.head.append(element('script', { src: `runs/${key}.js` }));
  sideBySide();
}

function sideBySide() {
  const runs = state.picked.filter((key) => key in loaded)
    .map((key) => data.runs.find((run) => run.key === key));
  $('side').hidden = !runs.length;
  if (!runs.length) return;
  const name = (run) => `${run.variant} ${run.key}`;
  const shades = (i) => COLOURS[i % COLOURS.length];
  const head = element('tr', {}, element('th', {}, ''),
    ...runs.map((run) => element('th', {}, name(run))));
  const rows = [
    ...data.axes.map((axis) => [axis, ...runs.map((run) => String(run[axis] ?? '–'))]),
    ...data.figures.map((figure) => [figure,
      ...runs.map((run) => number(data.values[figure][run.index]))])];
  const flows = unique(runs.flatMap((run) => Object.keys(loaded[run.key].flows)));
  for (const flow of flows) {
    rows.push([flow, ...runs.map((run) => number(loaded[run.key].flows[flow]))]);
  }
  $('sidetable').replaceChildren(element('thead', {}, head), element('tbody', {},
    ...rows.map(([first, ...rest]) => element('tr', {}, element('td', {}, first),
      ...rest.map((cell) => element('td', { class: 'n' }, cell))))));
  const cdf = runs.map((run, i) => ({ name: name(run), colour: shades(i),
    x: (loaded[run.key].cdf || { ms: [] }).ms, y: (loaded[run.key].cdf || { percent: [] }).percent }));
  const panels = runs.map((run) => {
    const { rates } = loaded[run.key];
    const lines = rates ? Object.keys(rates).filter((column) => column !== 't').map((column, i) => ({
      name: column, colour: shades(i), x: rates.t, y: rates[column] })) : [];
    return diagram(`${name(run)}: rates`, 't, s', 'Mbit/s', lines);
  });
  $('sidediagrams').replaceChildren(
    diagram('Delay of media packets', 'ms', 'packets that took less, %', cdf, { log: true }), ...panels);
}

function draw() {
  const runs = passing();
  diagrams(runs);
  table(runs);
}

controls();
draw();
// #KEY,KEY in the address: these side by side.
window.location.hash.slice(1).split(',').filter((key) => data.runs.some((run) => run.key === key))
  .forEach(pick);
draw();
