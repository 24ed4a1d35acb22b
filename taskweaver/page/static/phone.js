/** The bar below on small screens: one pane at a time. */

import { h } from './core/dom.js';
import { icon } from './core/icons.js';
import { changed } from './core/loop.js';
import { go, momentAddress, searchAddress } from './core/route.js';
import { here, ui } from './state.js';

const PANES = [['tree', 'Branches', 'tree'], ['chat', 'Chat', 'chat'], ['data', 'Data', 'data'], ['searches', 'Searches', 'search']];

/** Return the bar. */
export function phoneBar() {
  const isSearches = ui.place.kind === 'searches';
  const isComparing = ui.place.kind === 'compare';
  const shown = isSearches ? 'searches' : isComparing ? '' : ui.pane;
  const choose = (name) => () => {
    if (name === 'searches') return go(searchAddress());
    ui.pane = name;
    if ((isSearches || isComparing) && ui.session?.isLoaded) go(momentAddress(ui.session.id, here(ui.session).branch));
    else if (isSearches) go('#/');
    changed();
    return null;
  };
  return h('nav', { class: 'phone-bar', 'aria-label': 'Panes' }, PANES.map(([name, title, sign]) =>
    h('button', { key: name, type: 'button', class: shown === name ? 'chosen' : '', 'aria-current': shown === name ? 'page' : null, onclick: choose(name) }, icon(sign), h('span', {}, title))));
}
