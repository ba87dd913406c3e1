import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';
import { cents } from './cents.js';

/**
 * One commission, posted for one sale. No unique constraint on the sale: that it is posted once is the
 * idempotent handler's work.
 */
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

  /** What the salesperson gets. */
  @Column('bigint', { name: 'amount_cents', transformer: cents })
  amountCents!: bigint;

  /** Hundredths of a percent. */
  @Column('integer', { name: 'rate_bps' })
  rateBps!: number;

  @Column('timestamptz', { name: 'posted_at', default: () => 'now()' })
  postedAt!: Date;
}
