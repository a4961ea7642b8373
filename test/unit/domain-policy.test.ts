import { expect } from 'chai';
import {
  DomainPolicy,
  type DomainPolicyOptions,
  isPrivateAddress,
} from '../../ts/agent/browser/domain-policy.js';
import { Secrets } from '../../ts/agent/browser/secrets.js';
import { isBoqError } from '../../ts/core/errors.js';

const names: Record<string, string[]> = {
  'example.org': ['93.184.216.34'],
  'www.example.org': ['93.184.216.34'],
  'inside.example.org': ['93.184.216.34', '10.0.0.7'],
  'evil.net': ['203.0.113.9'],
};
const policy = (options: DomainPolicyOptions) => new DomainPolicy(options, async (host) => names[host] ?? []);

describe('domain policy', () => {
  const cases: [DomainPolicyOptions, string, RegExp | null][] = [
    [{}, 'https://example.org/a?b', null],
    [{}, 'about:blank', null],
    [{ allow: ['example.org'] }, 'https://www.example.org/', null],
    [
      { allow: ['example.org'] },
      'https://evil.net/?example.org',
      /evil.net is not among the allowed domains/,
    ],
    [{ allow: ['example.org'] }, 'https://example.org.evil.net/', /not among/],
    [{ allow: ['example.org'] }, 'https://notexample.org/', /not among/],
    [{ allow: ['example.org'] }, 'https://example.org@evil.net/', /evil.net is not/],
    [{ allow: ['*.example.org'] }, 'https://example.org/', /not among/],
    [{ allow: ['https://example.org'] }, 'http://example.org/', /not among/],
    [{ allow: ['example.org:8080'] }, 'http://example.org/', /not among/],
    [{ allow: ['EXAMPLE.org'] }, 'https://Example.ORG./', null],
    [{ allow: ['*'], deny: ['evil.net'] }, 'https://a.evil.net/', /evil.net is denied/],
    [{ allow: ['example.org'], deny: ['www.example.org'] }, 'https://www.example.org/', /denied/],
    [{}, 'http://127.0.0.1/', /private address/],
    [{}, 'http://2130706433/', /private address/],
    [{}, 'http://0x7f.1/', /private address/],
    [{}, 'http://[::1]/', /private address/],
    [{}, 'http://[::ffff:10.0.0.1]/', /private address/],
    [{}, 'http://169.254.169.254/latest', /private address/],
    [{}, 'http://localhost:3000/', /private address/],
    [{}, 'http://router.local/', /private address/],
    [{}, 'https://inside.example.org/', /leads to the private address 10.0.0.7/],
    [{ allow: ['*'] }, 'http://127.0.0.1/', /private address/],
    [{ allow: ['127.0.0.1'] }, 'http://127.0.0.1:81/', null],
    [{ allowPrivate: true }, 'http://192.168.1.1/', null],
    [{}, 'data:text/html,x', /data: addresses are refused/],
    [{}, 'blob:https://example.org/1', /blob: addresses/],
    [{}, 'file:///etc/passwd', /file: addresses/],
    [{}, 'javascript:alert(1)', /javascript: addresses/],
    [{}, 'chrome://settings', /chrome: addresses/],
    [{ allow: ['*'] }, 'file:///etc/passwd', /file: addresses/],
    [{ allow: ['file:', 'example.org'] }, 'file:///home/me/page.html', null],
    [{}, 'nonsense', /no address/],
    [{}, 'http://[2002:7f00:1::]/', /private address/],
    [{}, 'http://[::7f00:1]/', /private address/],
    [{ start: 'http://127.0.0.1:3000/a' }, 'http://127.0.0.1:3000/b', null],
    [{ start: 'http://127.0.0.1:3000/a' }, 'http://127.0.0.1:3001/b', /private address/],
    [{ start: 'http://127.0.0.1:3000/a', deny: ['127.0.0.1'] }, 'http://127.0.0.1:3000/a', /denied/],
    [{ start: 'http://localhost/' }, 'https://localhost/', null],
    [{ start: 'https://example.org/' }, 'https://example.com/', null],
    [{ start: 'https://example.org/', allow: ['evil.net'] }, 'http://www.example.org/x', null],
    [{ start: 'https://example.org/', allow: ['evil.net'] }, 'http://example.com/', /not among/],
    [{ start: 'https://example.org/' }, 'https://inside.example.org/', /leads to the private address/],
    [{ start: 'file:///home/me/site/a.html' }, 'file:///home/me/site/b/c.html', null],
    [{ start: 'file:///home/me/site/a.html' }, 'file:///home/me/site/../keys', /file: addresses/],
    [{ start: 'file:///home/me/site/a.html' }, 'file:///etc/passwd', /file: addresses/],
    [{ start: 'data:text/html,a' }, 'data:text/html,a', null],
    [{ start: 'data:text/html,a' }, 'data:text/html,b', /data: addresses/],
    [{ start: 'about:blank' }, 'file:///etc/passwd', /file: addresses/],
  ];
  for (const [options, url, reason] of cases) {
    it(`${JSON.stringify(options)}: ${url} is ${reason ? 'refused' : 'allowed'}`, async () => {
      const answer = await policy(options).refuse(url);
      if (reason) expect(answer).to.match(reason);
      else expect(answer).to.equal(null);
    });
  }

  it('refuses a pattern that is none', () => {
    expect(() => policy({ allow: ['exa mple'] }))
      .to.throw()
      .that.satisfies((error: unknown) => isBoqError(error, 'BOQ_USAGE'));
    expect(() => policy({ deny: [''] })).to.throw(/expected a domain/);
  });

  it('knows private addresses', () => {
    for (const address of ['10.1.2.3', '172.31.0.1', '100.64.0.1', 'fd00::1', 'fe80::1', '0.0.0.0', '::']) {
      expect(isPrivateAddress(address), address).to.equal(true);
    }
    for (const address of ['8.8.8.8', '172.32.0.1', '2606:4700::1', 'example.org']) {
      expect(isPrivateAddress(address), address).to.equal(false);
    }
  });
});

describe('secrets', () => {
  const secrets = new Secrets({
    user: 'kim',
    password: { value: 'kim$&pass', domains: ['shop.example'] },
    pin: '42',
  });

  it('are filled in by name, where they may be', async () => {
    expect(await secrets.fill('{{user}} and {{user}}', 'https://a.org/')).to.deep.equal({
      text: 'kim and kim',
    });
    expect(await secrets.fill('{{password}}', 'https://login.shop.example/x')).to.deep.equal({
      text: 'kim$&pass',
    });
    const elsewhere = await secrets.fill('{{password}}', 'https://shop.example.evil.net/');
    expect(elsewhere)
      .to.have.property('refused')
      .that.matches(/password may not be typed here/);
    expect(JSON.stringify(elsewhere)).not.to.contain('kim$&pass');
    expect(await secrets.fill('{{token}}', 'https://a.org/')).to.deep.equal({
      refused: 'there is no secret named token; known are user, password, pin',
    });
  });

  it('are masked in what comes back, longer ones first, short ones never', () => {
    expect(secrets.mask('typed kim$&pass as kim, pin 42')).to.equal('typed {{password}} as {{user}}, pin 42');
  });

  it('are masked as addresses show them', () => {
    const spaced = new Secrets({ phrase: 'open & shut +1' });
    for (const address of [
      `https://a.org/?q=${encodeURIComponent('open & shut +1')}`,
      `https://a.org/?${new URLSearchParams({ q: 'open & shut +1' })}`,
      `https://a.org/?q=${encodeURI('open & shut +1')}`,
    ]) {
      expect(spaced.mask(address)).to.equal('https://a.org/?q={{phrase}}');
    }
  });

  it('need a name and a value', () => {
    expect(() => new Secrets({ 'my key': 'x' })).to.throw(/"my key"/);
    expect(() => new Secrets({ key: '' })).to.throw(/without a value/);
  });
});
