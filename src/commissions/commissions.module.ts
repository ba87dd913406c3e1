import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Commission } from './commission.entity.js';
import { CommissionsConsumer } from './commissions.consumer.js';
import { CommissionsService } from './commissions.service.js';
import { SalespersonBalance } from './salesperson-balance.entity.js';

@Module({
  imports: [TypeOrmModule.forFeature([Commission, SalespersonBalance])],
  controllers: [CommissionsConsumer],
  providers: [CommissionsService],
})
export class CommissionsModule {}
