/** RabbitMQ's management API, as far as the harness needs it. */
export class ManagementApi {
  private readonly base: string;
  private readonly authorization: string;

  /** `url` carries the credentials of an administrator. */
  constructor(url: string) {
    const { username, password, origin, pathname } = new URL(url);
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    this.authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
    this.base = `${origin}${pathname.replace(/\/$/, '')}/api`;
  }

  get<T>(path: string): Promise<T> {
    return this.request('GET', path) as Promise<T>;
  }

  async put(path: string, body: object): Promise<void> {
    await this.request('PUT', path, { body: JSON.stringify(body) });
  }

  /** Deletes; what is already gone counts as deleted. */
  async delete(path: string, headers?: Record<string, string>): Promise<void> {
    await this.request('DELETE', path, { headers });
  }

  private async request(
    method: string,
    path: string,
    { body, headers }: { body?: string; headers?: Record<string, string> } = {},
  ): Promise<unknown> {
    const response = await fetch(this.base + path, {
      method,
      body,
      headers: {
        authorization: this.authorization,
        'content-type': 'application/json',
        ...headers,
      },
    });
    const text = await response.text();
    if (!response.ok && !(method === 'DELETE' && response.status === 404)) {
      throw new Error(`RabbitMQ's management API: ${method} ${path}: ${response.status} ${text}`);
    }
    return text === '' || !response.ok ? undefined : JSON.parse(text);
  }
}
