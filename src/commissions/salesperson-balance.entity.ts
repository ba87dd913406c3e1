import { Column, Entity, PrimaryColumn } from 'typeorm';
import { cents } from './cents.js';

/** The sum of a salesperson's commissions. */
@Entity('salesperson_balance')
export class SalespersonBalance {
  @PrimaryColumn('text', { name: 'salesperson_id' })
  salespersonId!: string;

  @Column('bigint', { name: 'total_cents', transformer: cents })
  totalCents!: bigint;
}
