/** Forms that start a search, and go on with one. */

import { isAble } from '../core/abilities.js';
import { button, field } from '../core/bits.js';
import { h } from '../core/dom.js';
import { icon } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { bytes, seen } from '../core/words.js';
import { chooseModel, hasNoModel, mayChoose } from '../models/chip.js';
import { resumeSearch, startSearch } from './data.js';
import { ideaOf, isTrying, partsOf, printedNames, trialLine, tryProgram } from './program.js';

const MOST_FILE_BYTES = 1_000_000;
const FILE_NAME = /^\w[\w.-]{0,127}$/;
const TEMPLATE = '# What is tried\n\nWhat an attempt may change, and what it must keep.\n\nMetric: score (maximize)\n\nEvaluate: measure.py\n';
const LIMITS = [['steps', 'Stop after attempts'], ['minutes', 'or minutes'], ['cost', 'or US dollars']];
const LESS = /err|loss|mae|mse|time|second|cost|excess|size|distance/i;

/** Ideas that are shipped, with what they reached and need. */
const EXAMPLES = [
  { name: 'stencil', title: 'Make a C program faster', reached: 'From 700 to 31,310 MFLOPS, 36 attempts', needs: '1 minute, needs gcc, no model' },
  { name: 'tabular', title: 'Fit a better classifier', reached: 'From 89.6 % to 98.1 % right, 51 attempts', needs: '1 minute, needs scikit-learn, no model' },
  { name: 'routes', title: 'Find shorter round trips', reached: 'From 32 % to 4.7 % over the bound, 7 attempts', needs: '5 minutes, needs a model' },
];

/** The form that is open: `kind` is `start`, or `resume` of a run; `mode` says how an idea is given. */
const form = { kind: '', run: '', mode: '', example: '', idea: '', isFromCode: false, metric: '', isLess: null, wish: '', files: {}, steps: '10', minutes: '', cost: '', problem: '', isBusy: false };
let isOffered = false;

/** Open the form for a new search, or close it. */
export function toggleStart() {
  open({ kind: form.kind === 'start' ? '' : 'start', steps: form.steps || '10' });
}

/** Open the form once where there is no search yet. */
export function offerStart() {
  if (isOffered) return;
  isOffered = true;
  open({ kind: 'start' });
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
  const { mode } = form;
  const { code, data } = partsOf(form.files);
  const pick = (names) => Object.fromEntries(names.map((name) => [name, form.files[name]]));
  const work = () => startSearch({ ...(mode === 'code' ? { idea: ideaOf(form, isLess()), data: pick(data) } : { idea: form.idea, files: pick(Object.keys(form.files)), data: form.isFromCode ? pick(data) : {} }), ...limits() });
  const isReady = mode === 'code' ? form.metric.trim() && code.length && !isTrying() : form.idea.trim();
  return h('form', { key: 'start', class: 'card start-form', onsubmit: (event) => send(event, work), onkeydown: closeByKey, ondragover: (event) => event.preventDefault(), ondrop: takeDropped },
    h('div', {}, h('h2', {}, 'What should get better?'), h('p', { class: 'muted' }, 'A search writes many versions of a program, measures each one, and keeps the best.')),
    h('div', { class: 'idea-cards' }, EXAMPLES.map((one) => ideaCard(form.example === one.name, one.title, one.reached, `Example. ${one.needs}`, () => takeExample(one.name))),
      ideaCard(mode === 'code', 'Start from my code', 'Drop a program that prints a number', hasNoModel() ? 'Needs a model' : 'Any language that runs on this machine', () => open({ mode: 'code', example: '', files: form.mode === 'code' ? form.files : {} }))),
    mode === 'code' ? codeFields() : null,
    mode === 'markdown' ? [field('Idea, as Markdown: what is tried, the metric, and the program that measures it', h('textarea', { key: form.example, rows: 9, value: form.idea, placeholder: TEMPLATE, oninput: (event) => open({ idea: event.target.value }), mount: showBeginning })), filesField('Add files beside it')] : null,
    mode ? limitFields() : null, problem(),
    h('div', { class: 'row' }, mode === 'markdown' ? null : button(mode === 'code' ? 'Show as Markdown' : 'Write the idea as Markdown', () => open({ idea: mode === 'code' ? ideaOf(form, isLess()) : form.idea, isFromCode: mode === 'code', mode: 'markdown', example: '' }), { kind: 'link' }),
      h('span', { class: 'row end' }, mode && !isReady ? h('span', { class: 'muted' }, missing(mode)) : null, button('Cancel', () => open({ kind: '' })), mode ? h('button', { type: 'submit', class: 'button primary', disabled: !isReady || form.isBusy }, form.isBusy ? 'Starting' : 'Start search') : null)),
    h('p', { class: 'caption muted' }, 'Attempts run in copies. Your files are not changed. You can stop at any time, and chat with every attempt.'));
}

/** What the form lacks before the search can start. */
function missing(mode) {
  if (mode !== 'code') return 'Write the idea to start.';
  if (isTrying()) return 'The test run goes on.';
  return partsOf(form.files).code.length ? 'Name the number to improve to start.' : 'Add the program to start.';
}

function ideaCard(isChosen, title, text, needs, choose) {
  return h('button', { type: 'button', class: `file-card${isChosen ? ' chosen' : ''}`, 'aria-pressed': String(isChosen), onclick: choose }, h('b', {}, title), h('span', {}, text), h('span', { class: 'caption muted' }, needs));
}

function showBeginning(element) {
  element.setSelectionRange(0, 0);
  element.focus();
  element.scrollTop = 0;
}

/** Fill the form with a shipped idea and the program that measures it. */
async function takeExample(name) {
  const read = async (file) => (await fetch(new URL(`./examples/${file}`, import.meta.url))).text();
  try {
    const [idea, evaluator] = await Promise.all([read(`${name}.md`), read(`evaluate_${name}.py.txt`)]);
    open({ mode: 'markdown', isFromCode: false, example: name, idea, files: { [`evaluate_${name}.py`]: evaluator } });
  } catch {
    open({ problem: 'The example could not be read: the server is not there.' });
  }
}

function isLess() {
  return form.isLess ?? LESS.test(form.metric);
}

function codeFields() {
  const option = (value, text) => h('label', { class: isLess() === value ? 'chosen' : '' }, h('input', { type: 'radio', class: 'unseen', name: 'direction', checked: isLess() === value, onchange: () => open({ isLess: value }) }), text);
  const [program] = partsOf(form.files).code;
  const names = printedNames();
  const label = { 'aria-label': 'Number to improve' };
  return [
    hasNoModel() ? h('p', { class: 'warning row' }, icon('warn'), h('span', { class: 'grow' }, 'A search of your own needs a model, which writes the attempts.'), mayChoose() ? button('Choose a model', chooseModel, { kind: 'small' }) : null) : null,
    filesField('Add the program and its data', { stays: 'stays', changes: 'may change' }),
    trialLine(form),
    program ? h('p', { class: 'warning caption' }, icon('warn'), `${seen(program)} measures itself, so an attempt could cheat. An idea in Markdown can name a second program that measures.`) : null,
    h('div', { class: 'limits' }, field('Number to improve', names.length ? h('select', { key: 'printed', ...label, update: (element) => { element.value = form.metric; }, onchange: (event) => open({ metric: event.target.value, isLess: null }) }, names.map((name) => h('option', { key: name, value: name }, seen(name)))) : h('input', { key: 'typed', type: 'text', value: form.metric, placeholder: 'as it is printed, such as mae', ...label, oninput: (event) => open({ metric: event.target.value }) })),
      h('div', { class: 'field' }, h('span', {}, form.isLess === null && form.metric ? 'Better is (guessed from the name)' : 'Better is'), h('span', { class: 'switch', role: 'radiogroup', 'aria-label': 'Better is' }, option(true, 'lower'), option(false, 'higher')))),
    field('What may be tried (optional)', h('textarea', { rows: 3, value: form.wish, oninput: (event) => open({ wish: event.target.value }) })),
  ];
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
    open(form.kind === 'start' ? { kind: '', mode: '', example: '', idea: '', files: {}, metric: '', wish: '' } : { kind: '' });
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
function filesField(label, words = null) {
  const names = Object.keys(form.files);
  const { code } = partsOf(form.files);
  const drop = (name) => () => {
    delete form.files[name];
    changedFiles();
  };
  const word = (name) => words && h('span', { class: 'muted' }, code.includes(name) ? words.changes : words.stays);
  return h('div', { class: 'field' }, h('label', { class: 'button small attach-files' }, label, h('input', { type: 'file', multiple: true, class: 'unseen', onchange: takeFiles })),
    names.length ? h('ul', { class: 'chips', 'aria-label': 'Files' }, names.map((name) => h('li', { key: name, class: 'chip' }, seen(name), word(name), button('', drop(name), { kind: 'quiet', sign: 'cross', label: `Remove ${seen(name)}` })))) : null);
}

function changedFiles() {
  changed();
  if (form.mode === 'code' && isAble('post', 'searches/trial')) tryProgram(form);
}

/** A program that is dropped is what the search begins with. */
function takeDropped(event) {
  const files = [...event.dataTransfer.files];
  event.preventDefault();
  if (!files.length) return;
  if (!form.mode) open({ mode: 'code', example: '', files: {} });
  add(files);
}

function takeFiles(event) {
  const files = [...event.target.files];
  event.target.value = '';
  add(files);
}

async function add(files) {
  const large = files.find((file) => file.size > MOST_FILE_BYTES);
  if (large) return open({ problem: `${large.name} has ${bytes(large.size)}: files beside an idea are texts of at most ${bytes(MOST_FILE_BYTES)}. Larger data belongs into the project.` });
  const misnamed = files.find((file) => !FILE_NAME.test(file.name));
  if (misnamed) return open({ problem: `Rename ${misnamed.name}: names of files have letters, digits, - _ and . only.` });
  const texts = await Promise.all(files.map((file) => file.text()));
  const unread = files[texts.findIndex((text) => /[\0\uFFFD]/.test(text))];
  if (unread) return open({ problem: `${unread.name} is no text in UTF-8. Such data belongs into the project.` });
  files.forEach((file, at) => { form.files[file.name] = texts[at]; });
  open({});
  return changedFiles();
}

function limitFields() {
  return h('div', { class: 'limits' }, LIMITS.map(([name, label]) => field(label,
    h('input', { type: 'number', min: 0, step: name === 'cost' ? 'any' : 1, placeholder: form.kind === 'start' ? 'no limit' : 'as before', value: form[name], 'aria-label': label, oninput: (event) => open({ [name]: event.target.value }) }))));
}

function limits() {
  const number = (name, factor) => (form[name] === '' ? undefined : Number(form[name]) * factor);
  return { steps: number('steps', 1), seconds: number('minutes', 60), cost: number('cost', 1) };
}
