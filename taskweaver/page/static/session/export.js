/** A conversation as one file that needs no server. */

import * as api from '../core/api.js';
import { attempt } from './actions.js';

/** Save the rounds until a moment as a page. */
export function exportPage(session, moment) {
  return attempt(async () => {
    const where = `${session.where}/branches/${api.path(moment.branch)}/page`;
    const response = await api.send('GET', where, { query: { until: moment.isPast ? moment.number : undefined } });
    const link = document.createElement('a');
    link.href = URL.createObjectURL(await response.blob());
    link.download = `${session.name.replace(/[^\w-]+/g, '-').slice(0, 40) || 'session'}.html`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}
