import { Column, Entity, PrimaryColumn } from 'typeorm';

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
