/**
 * What integration and end-to-end specs use; every server behind it is a real one. A spec file has a database
 * and a vhost of its own:
 *
 * @example
 * const cleanup = useCleanup();
 * let db: TestDatabase;
 * let broker: TestBroker;
 *
 * beforeAll(async () => {
 *   db = cleanup.use(await createTestDatabase());
 *   broker = cleanup.use(await createTestBroker());
 *   cleanup.use(await startService({ databaseUrl: db.url, rabbitmqUrl: broker.url }));
 * });
 *
 * it('posts one commission for a sale', async () => {
 *   await broker.publish('events', 'sale.completed', sale);
 *   await eventually(async () => expect(await db.query('SELECT sale_id FROM commission')).toHaveLength(1));
 * });
 *
 * Faults come from three sides: a proxy does what networks do (`createTcpProxy`), at a point of a message's way
 * if asked (`atPoint`); the shared servers do what operators do to one vhost or database; and a broker of the
 * spec's own can be restarted or filled up (`startOwnBroker`).
 *
 * @example
 * const rabbit = cleanup.use(await createTcpProxy(broker.url));
 * const service = cleanup.use(await startService({ databaseUrl: db.url, rabbitmqUrl: rabbit.url }));
 * rabbit.intercept(atPoint('before-ack', kill(service)));
 */
export {
  createTestBroker,
  type BrokerAddress,
  type TestBroker,
  type TakenMessage,
  type Depth,
  type Permissions,
} from './broker.js';
export { useCleanup, type Cleanup } from './cleanup.js';
export { createTestDatabase, type TestDatabase, type Session, type Lock } from './database.js';
export { eventually, holds, type EventuallyOptions } from './eventually.js';
export { freePort } from './free-port.js';
export { startOwnBroker, type OwnBroker, type OwnBrokerOptions } from './own-broker.js';
export { ownPostgresObstacle, startOwnPostgres, type OwnPostgres } from './own-postgres.js';
export { atPoint, cut, kill, stall, type Action, type Point, type PointOptions } from './points.js';
export { pgBouncerObstacle, startPgBouncer, type PgBouncer } from './pgbouncer.js';
export { startService, type ServiceProcess, type ServiceOptions } from './service-process.js';
export { watchSettlements, type Settlements } from './settlements.js';
export { createTcpProxy, type TcpProxy } from './tcp-proxy.js';
export type { Direction, Interceptor, Verdict } from './proxied-connection.js';
export { createTestApp, TestApp, type LogLine, type TestAppOptions } from './test-app.js';
