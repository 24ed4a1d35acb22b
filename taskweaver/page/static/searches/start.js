/** Forms that start a search, and go on with one. */

import { button, field } from '../core/bits.js';
import { h } from '../core/dom.js';
import { changed } from '../core/loop.js';
import { bytes, seen } from '../core/words.js';
import { resumeSearch, startSearch } from './data.js';

const MOST_FILE_BYTES = 1_000_000;
const EXAMPLE = '# What is tried\n\nWhat an attempt may change, and what it must keep.\n\nMetric: score (maximize)\n\nEvaluate: measure.py\n';
const LIMITS = [['steps', 'Most attempts'], ['minutes', 'Most minutes'], ['cost', 'Most money']];

/** The form that is open: `kind` is `start`, or `resume` of a run. */
const form = { kind: '', run: '', idea: '', files: {}, steps: '10', minutes: '', cost: '', problem: '', isBusy: false };

/** Open the form for a new search, or close it. */
export function toggleStart() {
  open({ kind: form.kind === 'start' ? '' : 'start', steps: form.steps || '10' });
}

/** Open the form that goes on with a run. */
export function openResume(run) {
  open({ kind: 'resume', run: run.name, steps: '', minutes: '', cost: '' });
}

function open(values) {
  Object.assign(form, { problem: '', isBusy: false }, values);
  changed();
}

/** Return the form that is open above a run; null if there is none. */
export function searchForm(run) {
  if (form.kind === 'start') return startForm();
  return form.kind === 'resume' && run?.name === form.run ? resumeForm(run) : null;
}

function startForm() {
  const keep = (event) => open({ idea: event.target.value });
  const work = () => startSearch({ idea: form.idea, files: form.files, ...limits() });
  return h('form', { key: 'start', class: 'card start-form', onsubmit: (event) => send(event, work), onkeydown: closeByKey }, h('h2', {}, 'Start a search'),
    field('Idea, as Markdown: what is tried, the metric, and the program that measures it', h('textarea', { rows: 9, value: form.idea, placeholder: EXAMPLE, oninput: keep, mount: (element) => element.focus() })),
    filesField(), limitFields(), problem(),
    h('div', { class: 'row end' }, button('Cancel', () => open({ kind: '' })), h('button', { type: 'submit', class: 'button primary', disabled: !form.idea.trim() || form.isBusy }, form.isBusy ? 'Starting' : 'Start')));
}

function resumeForm(run) {
  const work = () => resumeSearch(run.name, limits());
  return h('form', { key: 'resume', class: 'card start-form', onsubmit: (event) => send(event, work), onkeydown: closeByKey }, h('h2', {}, `Go on with ${seen(run.title) || run.name}`),
    h('p', { class: 'muted' }, 'Limits that are left empty stay as they were. Those that were reached must be higher.'), limitFields(), problem(),
    h('div', { class: 'row end' }, button('Cancel', () => open({ kind: '' })), h('button', { type: 'submit', class: 'button primary', disabled: form.isBusy, mount: (element) => element.focus() }, 'Go on')));
}

async function send(event, work) {
  event.preventDefault();
  open({ isBusy: true });
  try {
    await work();
    open(form.kind === 'start' ? { kind: '', idea: '', files: {} } : { kind: '' });
  } catch (error) {
    open({ problem: error.message });
  }
}

function closeByKey(event) {
  if (event.key !== 'Escape') return;
  event.stopPropagation();
  open({ kind: '' });
}

function problem() {
  return form.problem ? h('p', { class: 'failed-text', role: 'alert' }, seen(form.problem)) : null;
}

/** Files that lie beside the idea, such as the evaluator that it names. */
function filesField() {
  const names = Object.keys(form.files);
  const drop = (name) => () => {
    delete form.files[name];
    changed();
  };
  return h('div', { class: 'field' }, h('label', { class: 'button small attach-files' }, 'Add files beside it', h('input', { type: 'file', multiple: true, class: 'unseen', onchange: takeFiles })),
    names.length ? h('ul', { class: 'chips', 'aria-label': 'Files' }, names.map((name) => h('li', { key: name, class: 'chip' }, seen(name), button('', drop(name), { kind: 'quiet', sign: 'cross', label: `Remove ${seen(name)}` })))) : null);
}

async function takeFiles(event) {
  const files = [...event.target.files];
  event.target.value = '';
  const large = files.find((file) => file.size > MOST_FILE_BYTES);
  if (large) return open({ problem: `${large.name} has ${bytes(large.size)}: files beside an idea are texts of at most ${bytes(MOST_FILE_BYTES)}. Larger data belongs into the project.` });
  for (const file of files) form.files[file.name] = await file.text();
  return open({});
}

function limitFields() {
  return h('div', { class: 'limits' }, LIMITS.map(([name, label]) => field(label,
    h('input', { type: 'number', min: 0, step: name === 'cost' ? 'any' : 1, value: form[name], 'aria-label': label, oninput: (event) => open({ [name]: event.target.value }) }))));
}

function limits() {
  const number = (name, factor) => (form[name] === '' ? undefined : Number(form[name]) * factor);
  return { steps: number('steps', 1), seconds: number('minutes', 60), cost: number('cost', 1) };
}
