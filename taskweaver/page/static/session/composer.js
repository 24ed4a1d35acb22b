/** The composer of a branch: its draft, its files, and the names that `@` completes. */

import { branchName, button } from '../core/bits.js';
import { h } from '../core/dom.js';
import { icon, keyHint } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { draft, keepDraft } from '../core/prefs.js';
import { later, load, withModule } from '../later.js';
import { here, ui } from '../state.js';
import { RUN, ask, goTo, openFork, stop } from './actions.js';
import { toEnd } from './conversation.js';
import { takeChoice } from '../start/choices.js';
import { titled } from './paths.js';

/** Return the composer for a branch. */
export function composer(session, branch, slot = 'main') {
  const text = draft(session.id, branch);
  const state = session.stateOf(branch);
  const isBusy = state !== 'idle';
  const send = () => submit(session, branch, slot);
  return h('form', {
    class: 'composer', 'data-slot': slot, key: `composer-${slot}`, onsubmit: (event) => { event.preventDefault(); send(); },
    ondragover: (event) => { event.preventDefault(); event.currentTarget.classList.add('drop'); },
    ondragleave: (event) => event.currentTarget.classList.remove('drop'),
    ondrop: (event) => { event.preventDefault(); event.currentTarget.classList.remove('drop'); upload(session, branch, [...event.dataTransfer.files]); },
  },
  later.uploads.module?.chips(session, branch),
  later.names.module?.completion(slot, (name, area) => insertName(session, branch, slot, area, name)),
  h('div', { class: 'composer-box' },
    branchButton(session, branch, slot),
    h('textarea', {
      rows: 1, value: text, placeholder: hint(isBusy), 'aria-label': `Ask ${titled(session, branch)}`, autocomplete: 'off', spellcheck: 'true',
      oninput: (event) => typed(session, branch, slot, event.target), onkeydown: (event) => key(event, session, branch, slot), update: (area) => { grow(area); takeFocus(area, branch); },
      onpaste: (event) => { if (event.clipboardData.files.length) upload(session, branch, [...event.clipboardData.files]); },
    }),
    h('label', { class: 'button quiet attach', title: 'Add files' }, icon('file'), h('span', { class: 'unseen' }, 'Add files'),
      h('input', { type: 'file', multiple: true, class: 'unseen', onchange: (event) => { upload(session, branch, [...event.target.files]); event.target.value = ''; } })),
    isBusy && !text ? button('Stop', () => stop(session, branch), { sign: 'stop', key: 'Esc Esc', kind: 'stop' }) : h('button', { type: 'submit', class: 'button primary', disabled: !text.trim() }, h('span', {}, isBusy ? 'Queue' : 'Ask'), keyHint('↵'))),
  RUN.test(text) ? h('p', { class: 'caption muted hint' }, 'Runs as code in the kernel of this branch, without a model.') : null);
}

/** A hint that needs a second line would move the conversation: a phone has a short one. */
function hint(isBusy) {
  if (!isBusy) return 'Ask, or @ a name';
  return matchMedia('(max-width: 760px)').matches ? 'Ask next' : 'Ask next; it is answered after this round';
}

function branchButton(session, branch, slot) {
  const colour = session.tree.get(branch)?.colour ?? 0;
  if (slot !== 'main') return branchName(titled(session, branch), colour);
  return h('select', { class: `branch-select c${colour}`, 'aria-label': 'Branch that is asked', value: branch, onchange: (event) => goTo(session, event.target.value) },
    session.branches.map((one) => h('option', { key: one.name, value: one.name }, titled(session, one.name))));
}

function typed(session, branch, slot, area) {
  keepDraft(session.id, branch, area.value);
  if (area.value.includes('@')) load(later.names).then((found) => found?.lookForNames(session, branch, slot, area));
  else later.names.module?.lookForNames(session, branch, slot, area);
  changed();
}

/** A focus that was wanted comes once; on a touch screen it would open the keyboard over the page. */
function takeFocus(area, branch) {
  if (ui.composerFocus !== branch) return;
  ui.composerFocus = '';
  if (!matchMedia('(pointer: coarse)').matches) area.focus();
}

function grow(area) {
  if (area.shownValue === area.value && area.shownWidth === area.clientWidth) return;
  area.shownValue = area.value;
  area.shownWidth = area.clientWidth;
  area.style.height = 'auto';
  area.style.height = `${Math.min(area.scrollHeight, 220)}px`;
}

function key(event, session, branch, slot) {
  if (event.isComposing) return;
  if (later.names.module?.completionKey(event, (name) => insertName(session, branch, slot, event.target, name))) return;
  const area = event.target;
  if (event.key === 'Enter' && event.altKey) {
    event.preventDefault();
    const question = area.value;
    keepDraft(session.id, branch, '');
    openFork(session, branch, session.path(branch).length, question);
  } else if (event.key === 'Enter' && !event.shiftKey) {
    event.preventDefault();
    submit(session, branch, slot);
  } else if (event.key === 'ArrowUp' && !area.value) {
    event.preventDefault();
    keepDraft(session.id, branch, lastQuestion(session, branch));
    changed();
  }
}

function lastQuestion(session, branch) {
  const last = session.path(branch).at(-1);
  return session.rounds.get(last?.round_id)?.question.trim() ?? last?.title ?? '';
}

function insertName(session, branch, slot, area, name) {
  const { text, at } = later.names.module.chosenName(slot, area, name);
  keepDraft(session.id, branch, text);
  area.value = text;
  area.setSelectionRange(at, at);
  changed();
}

async function submit(session, branch, slot) {
  const text = draft(session.id, branch);
  if (!text.trim()) return;
  if (takeChoice(text)) {
    keepDraft(session.id, branch, '');
    changed();
    return;
  }
  keepDraft(session.id, branch, '');
  toEnd(slot);
  const isSent = await ask(session, branch, text);
  if (!isSent && !draft(session.id, branch)) keepDraft(session.id, branch, text);
  changed();
}

/** Send files to the working directory of a branch; return a promise of their end. */
export function upload(session, branch, files) {
  return withModule(later.uploads, (found) => found.upload(session, branch, files));
}

/** Drop files anywhere on the session: they go to the branch that is shown. */
export function dropAnywhere(session) {
  return (event) => {
    if (!event.dataTransfer?.files.length || event.defaultPrevented) return;
    event.preventDefault();
    upload(session, here(session).branch, [...event.dataTransfer.files]);
  };
}
