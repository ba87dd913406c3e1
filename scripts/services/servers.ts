import { postgres } from './postgres.js';
import { rabbitmq } from './rabbitmq.js';
import type { Server } from './server.js';

export const servers: readonly Server[] = [postgres, rabbitmq];
