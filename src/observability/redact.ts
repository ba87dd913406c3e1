/** Not file URLs: they hold no password, and name the packages in a stack trace. */
const CREDENTIALS = /\b(?!file:)([a-z][a-z0-9+.-]*:\/\/)\S*@/gi;

/**
 * Takes user and password out of every URL in a text. Works on malformed URLs too, where a password
 * holds `/` or `@`, and so rather takes out too much than too little.
 *
 * @example redactUrls('connect amqp://user:secret@host/') // 'connect amqp://***@host/'
 */
export function redactUrls(text: string): string {
  return text.replace(CREDENTIALS, '$1***@');
}
