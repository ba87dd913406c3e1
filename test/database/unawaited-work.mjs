// Loaded into a service with `node --import`: its handler writes once more after it has returned, in a
// promise that nobody holds.
import { CommissionsService } from '../../dist/src/commissions/commissions.service.js';

/** @type {(sale: object) => Promise<void>} */
const post = Reflect.get(CommissionsService.prototype, 'post');

CommissionsService.prototype.post = async function (sale) {
  await post.call(this, sale);
  setTimeout(() => void post.call(this, { ...sale, saleId: `${sale.saleId} late` }), 100);
};
