/** Not file URLs: they hold no password, and name the packages in a stack trace. */
const AUTHORITY = /(?<!\bfile):\/\//i;
const PASSWORD_PARAMETER = /([?&](?:ssl)?password=)[^\s&]*/gi;

/**
 * Takes user and password out of every URL in a text. Works on malformed URLs too, where a password
 * holds `/` or `@`, and so rather takes out too much than too little. A long text costs no more than its
 * length.
 *
 * @example redactUrls('connect amqp://user:secret@host/') // 'connect amqp://***@host/'
 */
export function redactUrls(text: string): string {
  return text.replace(/\S+/g, redactWord);
}

/** Everything from the first `://` of the word to its last `@`. */
function redactWord(word: string): string {
  const redacted = word.replace(PASSWORD_PARAMETER, '$1***');
  const authority = AUTHORITY.exec(redacted);
  const end = redacted.lastIndexOf('@');
  if (authority === null || end < authority.index) {
    return redacted;
  }
  return `${redacted.slice(0, authority.index)}://***${redacted.slice(end)}`;
}
