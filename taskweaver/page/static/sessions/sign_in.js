/** Signing in with a token. */

import { keepToken } from '../core/api.js';
import { field } from '../core/bits.js';
import { h } from '../core/dom.js';

/** Return the form; `onSignedIn` is called when a token was given. */
export function signIn(problem, onSignedIn) {
  const submit = (event) => {
    event.preventDefault();
    const text = event.target.elements.token.value.trim();
    if (!text) return;
    event.target.reset();
    keepToken(text);
    onSignedIn();
  };
  return h('main', { class: 'sign-in' }, h('form', { class: 'card', onsubmit: submit },
    h('h1', {}, 'TaskWeaver'), h('p', {}, problem || 'This server asks for a token. The address that it printed has one; in a team, its admin gives each person one.'),
    field('Token', h('input', { type: 'password', name: 'token', autocomplete: 'current-password', mount: (element) => element.focus() })),
    h('button', { type: 'submit', class: 'button primary' }, 'Sign in')));
}
