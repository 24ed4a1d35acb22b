/** Small parts that all screens use. */

import { h, local } from './dom.js';
import { icon, keyHint } from './icons.js';
import { seen } from './words.js';

/** Return a button with an icon, a word and the hint of a key. */
export function button(text, onclick, { kind = '', sign = null, key = '', label = null, ...more } = {}) {
  return h('button', { type: 'button', class: `button ${kind}`, onclick, 'aria-label': label, title: label, ...more },
    sign ? icon(sign) : null, text ? h('span', {}, text) : null, key ? keyHint(key) : null);
}

/** Return a text with what stands in backticks as code. */
export function withCode(text) {
  return seen(text).split(/`([^`\n]+)`/).map((part, at) => (at % 2 ? h('code', {}, part) : part));
}

/** Return the name of a branch in its colour. */
export function branchName(name, colour) {
  return h('span', { class: `branch-name c${colour}` }, name);
}

/** Return what is shown instead of content: a sentence that says what to do next. */
export function empty(text, ...more) {
  return h('div', { class: 'empty' }, h('p', {}, text), more);
}

/** Return grey bars in place of content that comes; they show after a moment. */
export function loading(lines = 4) {
  return h('div', { class: 'loading', role: 'status', 'aria-label': 'Loading' },
    Array.from({ length: lines }, (_, at) => h('span', { class: `bar w${at % 3}` })));
}

/** Return an error: what happened, what is unharmed, what one can do. */
export function failure(title, text, ...actions) {
  return h('div', { class: 'failure', role: 'group', 'aria-label': title },
    h('p', { class: 'failure-title' }, icon('cross'), seen(title)), text ? h('p', {}, seen(text)) : null,
    actions.length ? h('div', { class: 'row' }, actions) : null);
}

/** Return a labelled field. */
export function field(label, control) {
  return h('label', { class: 'field' }, h('span', {}, label), control);
}

/** Return the field of a form for a title: what is typed over it stays when the page is drawn again. */
export function titleField(label, title) {
  const mount = (element) => {
    element.value = title;
    element.focus();
    element.select();
  };
  return h('input', { type: 'text', name: 'title', 'aria-label': label, maxlength: 200, mount });
}

/** Return a dialog over the page; `close` is called when it is left by a key, its button or a click beside it. */
export function dialog(label, kind, close, ...children) {
  const beside = (event) => event.target === event.currentTarget && close();
  return h('dialog', { class: `dialog ${kind}`, 'aria-label': label, mount: (element) => element.showModal(), onclose: close, onclick: beside }, h('div', { class: 'dialog-body' }, children));
}

let menus = 0;

/** Return a button that opens a list of actions `[text, run]`. */
export function menu(sign, label, items, disabled = false, text = '') {
  menus += 1;
  return local({ class: 'menu' }, `menu-${menus}`, (id) => {
    const ontoggle = (event) => {
      if (event.newState !== 'open') return;
      const [list, box] = [event.target, event.target.previousSibling.getBoundingClientRect()];
      const isAbove = box.bottom + list.offsetHeight > innerHeight;
      list.style.top = `${isAbove ? box.top - list.offsetHeight : box.bottom}px`;
      list.style.left = `${Math.max(4, box.left > innerWidth / 2 ? box.right - list.offsetWidth : box.left)}px`;
      list.firstChild?.focus();
    };
    const onkeydown = (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const all = [...event.currentTarget.children];
      if (step) all[(all.indexOf(document.activeElement) + step + all.length) % all.length].focus();
      if (step || event.key === 'Escape') event.stopPropagation();
      if (step) event.preventDefault();
    };
    const choose = (run) => (event) => {
      event.currentTarget.parentNode.hidePopover();
      run();
    };
    return [
      button(text, null, { kind: 'quiet', sign, label: text ? null : label, disabled, popovertarget: id, 'aria-haspopup': 'menu' }),
      h('div', { id, popover: 'auto', class: 'menu-list', role: 'menu', 'aria-label': label, ontoggle, onkeydown }, items.filter(Boolean).map(([name, run]) => h('button', { key: name, type: 'button', role: 'menuitem', onclick: choose(run) }, name))),
    ];
  });
}
