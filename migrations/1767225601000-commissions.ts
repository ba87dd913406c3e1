import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The example's tables. Delete this file together with src/commissions. */
export class Commissions1767225601000 implements MigrationInterface {
  name = 'Commissions1767225601000';

  async up(queryRunner: QueryRunner): Promise<void> {
    // No unique constraint on sale_id, on purpose: what protects it is the key.
    await queryRunner.query(`
      CREATE TABLE commission (
        id             bigint GENERATED ALWAYS AS IDENTITY,
        sale_id        text NOT NULL,
        salesperson_id text NOT NULL,
        product_type   text NOT NULL,
        amount_cents   bigint NOT NULL,
        rate_bps       integer NOT NULL,
        posted_at      timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT commission_pk PRIMARY KEY (id)
      )`);
    await queryRunner.query('CREATE INDEX commission_sale_id_ix ON commission (sale_id)');
    await queryRunner.query(`
      CREATE TABLE salesperson_balance (
        salesperson_id text NOT NULL,
        total_cents    bigint NOT NULL,
        CONSTRAINT salesperson_balance_pk PRIMARY KEY (salesperson_id)
      )`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE salesperson_balance');
    await queryRunner.query('DROP TABLE commission');
  }
}
