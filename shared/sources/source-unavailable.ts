import { AppError } from '#shared/errors.ts';

/** A host that gives no answer for now: it cannot be reached, is overloaded or takes too long. The same request may succeed later. */
export class SourceUnavailable extends AppError {
  constructor(publicMessage: string, cause?: unknown) {
    super('validation_failed', publicMessage, { cause });
    this.name = 'SourceUnavailable';
  }
}
