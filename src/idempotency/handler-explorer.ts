import { Injectable, type Type } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { Transport, type MsPattern } from '@nestjs/microservices';
import {
  PATTERN_HANDLER_METADATA,
  PATTERN_METADATA,
  TRANSPORT_METADATA,
} from '@nestjs/microservices/constants.js';
import { PatternHandler } from '@nestjs/microservices/enums/pattern-handler.enum.js';
import { transformPatternToRoute } from '@nestjs/microservices/utils/index.js';
import {
  IDEMPOTENT_HANDLER,
  NATURALLY_IDEMPOTENT,
  type IdempotentHandlerMetadata,
} from './idempotent-handler.decorator.js';

/** A method of a controller, as its decorators describe it. */
export interface ExploredHandler {
  controller: Type;
  method: object;
  /** `CommissionsConsumer.onSaleCompleted`, for messages to people. */
  title: string;
  /** Empty for a method that handles no message. */
  patterns: string[];
  isRequest: boolean;
  idempotent: IdempotentHandlerMetadata | undefined;
  naturallyIdempotent: string | undefined;
}

/** Reads what the decorators wrote: every message handler, and every method that is marked as one. */
@Injectable()
export class HandlerExplorer {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
  ) {}

  explore(): ExploredHandler[] {
    return this.discovery
      .getControllers()
      .map((wrapper) => wrapper.metatype as Type | null)
      .filter((controller) => controller !== null)
      .flatMap((controller) => this.exploreController(controller));
  }

  private exploreController(controller: Type): ExploredHandler[] {
    const prototype = controller.prototype as Record<string, object>;
    return this.scanner
      .getAllMethodNames(prototype)
      .map((name) => describe(controller, name, prototype[name]!))
      .filter(
        (found) =>
          found.patterns.length > 0 ||
          found.idempotent !== undefined ||
          found.naturallyIdempotent !== undefined,
      );
  }
}

function describe(controller: Type, name: string, method: object): ExploredHandler {
  const kind = Reflect.getMetadata(PATTERN_HANDLER_METADATA, method) as PatternHandler | undefined;
  const transport = Reflect.getMetadata(TRANSPORT_METADATA, method) as Transport | undefined;
  const patterns = (Reflect.getMetadata(PATTERN_METADATA, method) ?? []) as MsPattern[];
  const handlesMessages = kind !== undefined && (transport ?? Transport.RMQ) === Transport.RMQ;
  return {
    controller,
    method,
    title: `${controller.name}.${name}`,
    patterns: handlesMessages ? patterns.map((pattern) => transformPatternToRoute(pattern)) : [],
    isRequest: kind === PatternHandler.MESSAGE,
    idempotent: Reflect.getMetadata(IDEMPOTENT_HANDLER, method) as
      IdempotentHandlerMetadata | undefined,
    naturallyIdempotent: Reflect.getMetadata(NATURALLY_IDEMPOTENT, method) as string | undefined,
  };
}
