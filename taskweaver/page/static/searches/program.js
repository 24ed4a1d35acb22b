/** A person's program for a search: its one test run, the numbers that it prints, and the idea that is made of it. */

import * as api from '../core/api.js';
import { button } from '../core/bits.js';
import { h } from '../core/dom.js';
import { icon, spinner } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { seconds, seen } from '../core/words.js';

const CODE = /\.(?:py|c|cc|cpp|f90|r|jl|js|go|rs|sh|java|pl|rb|lua)$|^[^.]+$/i;
const NUMBER = /^\s*([\p{L}_][\p{L}\p{N}_ ./%()-]{0,60}?)\s*[:=]\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*(?:[\p{L}%/]{0,12})\s*$/iu;
const MOST_OUTPUT_CHARS = 1_500;

let trial = { state: '' };

/** Return the files that attempts may change, the program first, and those that stay as they are. */
export function partsOf(files) {
  const names = Object.keys(files);
  const code = names.filter((name) => CODE.test(name));
  return { code, data: names.filter((name) => !code.includes(name)) };
}

/** Run the program once, unless there is none; again after the end if its files have changed meanwhile. */
export async function tryProgram(form) {
  if (trial.state === 'running') {
    trial.isOld = true;
    return;
  }
  const [program] = partsOf(form.files).code;
  trial = { state: program ? 'running' : '', program };
  changed();
  if (!program) return;
  const mine = trial;
  try {
    const done = await api.post('searches/trial', { program, files: { ...form.files } });
    trial = { ...done, program, state: done.problem ? 'failed' : 'done', numbers: numbersOf(done.output) };
  } catch (error) {
    trial = { state: 'failed', program, problem: error.message, output: '', numbers: [] };
  }
  if (mine.isOld) return tryProgram(form);
  const names = trial.numbers.map((one) => one.name);
  if (names.length && !names.includes(form.metric)) Object.assign(form, { metric: names.at(-1), isLess: null });
  changed();
}

/** Return the numbers that a program printed by their names, of each name the last. */
export function numbersOf(output) {
  const found = new Map();
  for (const line of output.split('\n')) {
    const [, name, value] = NUMBER.exec(line) ?? [];
    if (name) found.set(name, value);
  }
  return [...found].map(([name, value]) => ({ name, value }));
}

/** Return whether the test run goes on. */
export function isTrying() {
  return trial.state === 'running';
}

/** Return the names of the numbers that the program printed. */
export function printedNames() {
  return (trial.numbers ?? []).map((one) => one.name);
}

/** Return the line on the test run: it runs, the score to beat, or what went wrong. */
export function trialLine(form) {
  const again = () => button('Run again', () => tryProgram(form), { kind: 'small' });
  if (!trial.state) return null;
  if (isTrying()) return h('p', { class: 'row', role: 'status' }, spinner(), `${seen(trial.program)} is run once, for at most 60 s.`);
  const took = trial.seconds === undefined ? '' : `It ran for ${seconds(trial.seconds)}`;
  if (trial.state === 'failed') return h('div', { class: 'field', role: 'status' }, h('p', { class: 'failed-text row' }, icon('cross'), h('span', { class: 'grow' }, [took && `${took}.`, seen(trial.problem)].filter(Boolean).join(' ')), again()), printed());
  const chosen = trial.numbers.find((one) => one.name === form.metric);
  if (chosen) return h('p', { class: 'row', role: 'status' }, icon('check'), h('span', { class: 'grow' }, `${took} and printed `, h('code', {}, `${seen(chosen.name)}: ${chosen.value}`), '. That is the score to beat.'), again());
  return h('div', { class: 'field', role: 'status' }, h('p', { class: 'warning row' }, icon('warn'), h('span', { class: 'grow' }, trial.numbers.length ? `${took} and printed no ${seen(form.metric) || 'number of this name'}.` : `${took} and printed no number. Let it print, for example, `, trial.numbers.length ? null : h('code', {}, 'score: 0.93')), again()), printed());
}

function printed() {
  return trial.output ? h('pre', { class: 'output', tabindex: 0, role: 'group', 'aria-label': 'What it printed' }, seen(trial.output.slice(-MOST_OUTPUT_CHARS))) : null;
}

/** Return the idea of a search that improves the program, with its code. */
export function ideaOf(form, isLess) {
  const { code, data } = partsOf(form.files);
  const metric = form.metric.trim() || 'score';
  const chosen = trial.numbers?.find((one) => one.name === metric);
  const named = (names) => names.map((name) => `\`${name}\``).join(', ');
  const parts = [
    `# Improve ${code[0] ?? 'the program'}`,
    form.wish.trim() || 'Any change of the program that keeps its purpose.',
    `The first attempt is ${named(code) || 'the program'}, unchanged${data.length ? ' but for the place of its data' : ''}: it prints \`${metric}: VALUE\`, and so must every attempt.${chosen ? ` It printed ${chosen.value}.` : ''}`,
    data.length ? `Data, which no attempt changes: ${named(data.map((name) => `data/${name}`))}.` : '',
    `Metric: ${metric} (${isLess ? 'minimize' : 'maximize'})`,
    ...code.map((name) => `## ${name}\n\n${fenced(form.files[name])}`),
  ];
  return `${parts.filter(Boolean).join('\n\n')}\n`;
}

function fenced(text) {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${text.replace(/\n?$/, '\n')}${fence}`;
}
