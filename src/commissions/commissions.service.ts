import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { commissionCents, rateBps } from './commission-rates.js';
import { Commission } from './commission.entity.js';
import type { SaleCompleted } from './sale-completed.js';
import { SalespersonBalance } from './salesperson-balance.entity.js';

/** Ordinary Nest code. It knows nothing of messages, keys or transactions. */
@Injectable()
export class CommissionsService {
  constructor(
    @InjectRepository(Commission) private readonly commissions: Repository<Commission>,
    @InjectRepository(SalespersonBalance)
    private readonly balances: Repository<SalespersonBalance>,
  ) {}

  /** Posts the commission of a sale and adds it to the salesperson's balance. */
  async post(sale: SaleCompleted): Promise<void> {
    const rate = rateBps(sale.productType);
    const amountCents = commissionCents(sale.amountCents, rate);
    await this.commissions.insert({
      saleId: sale.saleId,
      salespersonId: sale.salespersonId,
      productType: sale.productType,
      amountCents,
      rateBps: rate,
    });
    await this.addToBalance(sale.salespersonId, amountCents);
  }

  private async addToBalance(salespersonId: string, amountCents: bigint): Promise<void> {
    // One statement: read, add and save would lose one of two sales that are posted together.
    await this.balances.query(
      `INSERT INTO salesperson_balance (salesperson_id, total_cents) VALUES ($1, $2)
       ON CONFLICT (salesperson_id)
       DO UPDATE SET total_cents = salesperson_balance.total_cents + excluded.total_cents`,
      [salespersonId, amountCents.toString()],
    );
  }
}
