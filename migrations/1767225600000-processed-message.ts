import type { MigrationInterface, QueryRunner } from 'typeorm';

export class ProcessedMessage1767225600000 implements MigrationInterface {
  name = 'ProcessedMessage1767225600000';

  async up(queryRunner: QueryRunner): Promise<void> {
    // The collation is byte-exact: an upgrade of the operating system's collations must not break the
    // one index that everything rests on.
    await queryRunner.query(`
      CREATE TABLE processed_message (
        consumer     text COLLATE "C" NOT NULL,
        key          text COLLATE "C" NOT NULL,
        fingerprint  bytea,
        reply        jsonb,
        processed_at timestamptz NOT NULL DEFAULT now(),
        expires_at   timestamptz NOT NULL,
        CONSTRAINT processed_message_pk PRIMARY KEY (consumer, key)
      )`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE processed_message');
  }
}
