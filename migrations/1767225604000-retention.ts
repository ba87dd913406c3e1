import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Retention1767225604000 implements MigrationInterface {
  name = 'Retention1767225604000';

  async up(queryRunner: QueryRunner): Promise<void> {
    // By consumer, because each one has a clock of its own: time in which it did not consume does not count.
    await queryRunner.query(
      'CREATE INDEX IF NOT EXISTS processed_message_expires_at_ix ON processed_message (consumer, expires_at)',
    );
    await queryRunner.query(`
      CREATE TABLE consumer_activity (
        consumer  text COLLATE "C" NOT NULL,
        active_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT consumer_activity_pk PRIMARY KEY (consumer)
      )`);
    await queryRunner.query(`
      CREATE TABLE consumer_gap (
        consumer text COLLATE "C" NOT NULL,
        began_at timestamptz NOT NULL,
        ended_at timestamptz NOT NULL,
        CONSTRAINT consumer_gap_pk PRIMARY KEY (consumer, began_at),
        CONSTRAINT consumer_gap_ends_ck CHECK (ended_at > began_at)
      )`);
    // Nobody has noted anything until now; the last key is the last that is known of its consumer.
    await queryRunner.query(`
      INSERT INTO consumer_activity (consumer, active_at)
      SELECT consumer, max(processed_at) FROM processed_message GROUP BY consumer`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE consumer_gap');
    await queryRunner.query('DROP TABLE consumer_activity');
    await queryRunner.query('DROP INDEX processed_message_expires_at_ix');
  }
}
