import { Controller } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { IdempotentHandler } from '../idempotency/index.js';
import { CommissionsService } from './commissions.service.js';
import { saleCompletedSchema, type SaleCompleted } from './sale-completed.js';

@Controller()
export class CommissionsConsumer {
  constructor(private readonly commissions: CommissionsService) {}

  @EventPattern<string>('sale.completed')
  @IdempotentHandler<SaleCompleted>((sale) => sale.saleId)
  async onSaleCompleted(
    @Payload({ schema: saleCompletedSchema }) sale: SaleCompleted,
  ): Promise<void> {
    await this.commissions.post(sale);
  }
}
