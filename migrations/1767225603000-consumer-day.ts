import type { MigrationInterface, QueryRunner } from 'typeorm';

export class ConsumerDay1767225603000 implements MigrationInterface {
  name = 'ConsumerDay1767225603000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE consumer_day (
        day                      date NOT NULL,
        consumer                 text COLLATE "C" NOT NULL,
        processed                bigint NOT NULL DEFAULT 0,
        duplicates               bigint NOT NULL DEFAULT 0,
        key_reuses               bigint NOT NULL DEFAULT 0,
        dead_letters             bigint NOT NULL DEFAULT 0,
        oldest_duplicate_seconds double precision,
        CONSTRAINT consumer_day_pk PRIMARY KEY (day, consumer)
      )`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE consumer_day');
  }
}
