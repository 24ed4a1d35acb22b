/** A conversation as one file: a page that needs no server, a notebook, a script. */

import * as api from '../core/api.js';
import { saveBlob } from '../core/clipboard.js';
import { attempt } from './actions.js';

const SUFFIXES = { page: 'html', notebook: 'ipynb', script: 'py' };

/** Save the rounds until a moment. */
export function exportAs(session, moment, kind) {
  return attempt(async () => {
    const where = `${session.where}/branches/${api.path(moment.branch)}/${kind === 'page' ? kind : 'export'}`;
    const response = await api.send('GET', where, { query: { until: moment.isPast ? moment.number : undefined, kind } });
    const name = session.name.replace(/[^\p{L}\p{N}-]+/gu, '-').replace(/^-|-$/g, '').slice(0, 60) || 'session';
    saveBlob(await response.blob(), `${name}.${SUFFIXES[kind]}`);
  });
}
