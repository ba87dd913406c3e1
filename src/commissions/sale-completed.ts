import { z } from 'zod';

/** The event `sale.completed`, as the shop publishes it. Unknown fields are let through. */
export const saleCompletedSchema = z.object({
  saleId: z.string().min(1),
  salespersonId: z.string().min(1),
  productType: z.string().min(1),
  /** The price of the sale. */
  amountCents: z.int().nonnegative(),
  currency: z.string().length(3),
  completedAt: z.iso.datetime({ offset: true }),
});

export type SaleCompleted = z.infer<typeof saleCompletedSchema>;
