import { Column, Entity, PrimaryColumn, PrimaryGeneratedColumn } from 'typeorm';

/** The inbox table as an entity, the way an application without the template maps it. */
@Entity('processed_message')
export class ProcessedMessage {
  @PrimaryColumn('text')
  consumer!: string;

  @PrimaryColumn('text')
  key!: string;

  @Column('bytea')
  fingerprint!: Buffer;

  @Column('timestamptz', { name: 'expires_at' })
  expiresAt!: Date;
}

/** As the example's entity, with the same generated columns to be read back. */
@Entity('commission')
export class Commission {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  id!: string;

  @Column('text', { name: 'sale_id' })
  saleId!: string;

  @Column('text', { name: 'salesperson_id' })
  salespersonId!: string;

  @Column('text', { name: 'product_type' })
  productType!: string;

  @Column('bigint', { name: 'amount_cents' })
  amountCents!: number;

  @Column('integer', { name: 'rate_bps' })
  rateBps!: number;

  @Column('timestamptz', { name: 'posted_at', default: () => 'now()' })
  postedAt!: Date;
}
