import { Module, type DynamicModule, type FactoryProvider } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { joinAmbientTransaction } from './ambient-transaction.js';
import { dataSourceOptions, type DatabaseOptions } from './data-source.js';
import { DatabaseUnavailableError } from './errors.js';

const START_ATTEMPTS = 5;
const START_RETRY_MS = 1_000;

@Module({})
export class DatabaseModule {
  /** TypeORM's module, with a data source whose repositories join the ambient transaction. */
  static forRootAsync(
    options: Pick<FactoryProvider<DatabaseOptions>, 'inject' | 'useFactory'>,
  ): DynamicModule {
    return {
      module: DatabaseModule,
      imports: [
        TypeOrmModule.forRootAsync({
          inject: options.inject,
          useFactory: async (...dependencies: unknown[]) => ({
            ...dataSourceOptions(await options.useFactory(...dependencies)),
            autoLoadEntities: true,
            retryAttempts: START_ATTEMPTS,
            retryDelay: START_RETRY_MS,
          }),
          dataSourceFactory: async (resolved) => joinAmbientTransaction(await connect(resolved!)),
        }),
      ],
    };
  }
}

/** @throws DatabaseUnavailableError */
async function connect(options: DataSourceOptions): Promise<DataSource> {
  try {
    return await new DataSource(options).initialize();
  } catch (error) {
    throw new DatabaseUnavailableError(error);
  }
}
