/** The first screen: ask, questions and files to begin with, and recent sessions. */

import * as api from '../core/api.js';
import { h } from '../core/dom.js';
import { icon, keyHint } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { draft, keepDraft } from '../core/prefs.js';
import { go, momentAddress } from '../core/route.js';
import { ask, attempt, focusComposer } from '../session/actions.js';
import { upload } from '../session/composer.js';
import { readSessions, recentSessions } from '../sessions/list.js';
import { ui } from '../state.js';
import { choices, takeChoice, withoutFile } from './choices.js';
import { filesSection, project, readProject } from './files.js';

let isBeginning = false;

/** Read what the screen shows; return the number of the list's last change. */
export function readStart() {
  readProject(() => ui.place.kind === 'sessions');
  return readSessions();
}

/** Begin a session with a question, or with files; open it. */
async function begin(question, files = []) {
  if (isBeginning) return;
  isBeginning = true;
  changed();
  const isDone = await attempt(async () => {
    const made = await api.post('sessions', files.length ? { title: files[0].name.slice(0, 200) } : {});
    const where = `sessions/${api.path(made.session_id)}`;
    focusComposer('main');
    if (question) await ask({ where }, 'main', question);
    if (files.length) await upload({ id: made.session_id, where }, 'main', files);
    go(momentAddress(made.session_id, 'main'));
  });
  isBeginning = false;
  if (isDone && question === draft('', 'start').trim()) keepDraft('', 'start', '');
  changed();
}

/** Return the screen. */
export function startScreen() {
  const take = (files) => files.length && begin('', files);
  const mark = (isOver) => (event) => {
    if (!event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    event.currentTarget.classList.toggle('drop', isOver);
  };
  const ondrop = (event) => {
    mark(false)(event);
    take([...event.dataTransfer.files]);
  };
  return h('main', { class: 'start', tabindex: -1, ondragover: mark(true), ondragleave: mark(false), ondrop },
    h('div', { class: 'column wide-column' },
      h('h1', {}, 'What do you want to know?'),
      askForm(),
      choices(project.questions.map((one) => ({ text: one.text, shown: withoutFile(one), result: [one.result, `from ${one.file}`].filter(Boolean).join(' ') })), begin, 'Or start with one of these', 'as-cards'),
      filesSection((name) => begin(`What is in ${name}?`), take),
      recentSessions()));
}

function askForm() {
  const text = draft('', 'start');
  const send = () => {
    const text = draft('', 'start'); // what was typed since the last drawing counts
    if (takeChoice(text)) keepDraft('', 'start', '');
    else if (text.trim()) begin(text.trim());
    changed();
  };
  const oninput = (event) => {
    keepDraft('', 'start', event.target.value);
    changed();
  };
  const onkeydown = (event) => {
    if (event.isComposing || event.key !== 'Enter' || event.shiftKey) return;
    event.preventDefault();
    send();
  };
  const isNarrow = matchMedia('(max-width: 760px)').matches;
  // On a touch screen a focus opens the keyboard over the page.
  const mount = (element) => {
    if (!matchMedia('(pointer: coarse)').matches) element.focus();
  };
  const onsubmit = (event) => {
    event.preventDefault();
    send();
  };
  return h('form', { class: 'composer start-composer', onsubmit }, h('div', { class: 'composer-box' },
    h('textarea', { rows: 1, value: text, 'aria-label': 'Ask about your files', placeholder: isNarrow ? 'Ask about your files' : 'Ask about your files, or drop a new one anywhere', oninput, onkeydown, mount }),
    h('label', { class: 'button quiet attach', title: 'Add files' }, icon('file'), h('span', { class: 'unseen' }, 'Add files'), h('input', { type: 'file', multiple: true, class: 'unseen', onchange: (event) => begin('', [...event.target.files]) })),
    h('button', { type: 'submit', class: 'button primary', disabled: !text.trim() || isBeginning }, h('span', {}, isBeginning ? 'Opening' : 'Ask'), keyHint('↵'))));
}
