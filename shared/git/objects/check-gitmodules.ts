import { GitFault } from '#shared/git/git-fault.ts';
import { readGitConfig } from '#shared/git/objects/git-config.ts';
import { noWarnings } from '#shared/git/objects/warnings.ts';

/**
 * What git's fsck checks of a `.gitmodules` file: names, addresses, paths and commands that have made clients run what they
 * should not. One that is not in git's syntax passes, as it does there: what can be read of it is checked.
 * @throws GitFault naming the fault; whoever calls knows the object
 */
export function checkGitmodules(file: Buffer, warn = noWarnings): void {
  const whole = readGitConfig(file, (variable, value) => {
    // To git the name of a variable ends at a NUL byte.
    const [name] = variable.split('\0');
    const [, submodule, key] = /^submodule\.(.*)\.([^.]*)$/s.exec(name ?? '') ?? [];
    if (submodule === undefined) return;
    if (submodule === '' || submodule.split(/[/\\]/).includes('..')) throw fault('gitmodulesName', 'name', submodule);
    const text = value?.split('\0')[0];
    if (text === undefined) return;
    if (key === 'url' && !isSoundUrl(text)) throw fault('gitmodulesUrl', 'url', text);
    if (key === 'path' && text.startsWith('-')) throw fault('gitmodulesPath', 'path', text);
    if (key === 'update' && text.startsWith('!')) throw fault('gitmodulesUpdate', 'update setting', text);
  });
  if (!whole) warn('gitmodulesParse', 'could not parse gitmodules blob');
}

function fault(id: string, what: string, value: string): GitFault {
  // Bytes that are no plain text may not reach the terminal of whoever reads this.
  const shown = value.slice(0, 200).replace(/[^ -~]/g, '?');
  return new GitFault(`is used as .gitmodules and has a submodule with a ${what} that is not allowed: '${shown}' (${id})`);
}

function isSoundUrl(url: string): boolean {
  if (url.startsWith('-')) return false;
  if (/^\.\.?[/\\]/.test(url) || url.startsWith('git://')) {
    // Relative ones are put behind the address of the repository: none may break a line there, or replace the host.
    return !hasNewline(url) && !/^(?:\.[/\\])*\.\.[/\\](?:\.{1,2}[/\\])*[:/]/.test(url);
  }
  const address = /^(?:https?|ftps?)::(.*)$/s.exec(url)?.[1] ?? url;
  return address !== url || /^(?:https?|ftps?):\/\//.test(url) ? isSoundHttpUrl(address) : true;
}

/** Split as git's `credential_from_url` does; each part is decoded by itself. */
function isSoundHttpUrl(url: string): boolean {
  const [, protocol, authority = '', path = ''] = /^(.+?):\/\/([^/?#]*)(.*)$/s.exec(url) ?? [];
  // A protocol ends where the first of them is, and has a name.
  if (protocol === undefined || url.startsWith('://')) return false;
  const at = authority.indexOf('@');
  const host = authority.slice(at + 1);
  const user = at < 0 ? '' : authority.slice(0, at);
  const colon = user.indexOf(':');
  const credentials = colon < 0 ? [user] : [user.slice(0, colon), user.slice(colon + 1)];
  return host !== '' && ![protocol, host, ...credentials, path.replace(/^\/+/, '')].some(hasNewline);
}

/** As it stands, or once decoded. What is before a colon git takes for a protocol and does not decode. */
function hasNewline(part: string): boolean {
  const colon = part.indexOf(':');
  return part.includes('\n') || /%0a/i.test(part.slice(Math.max(colon, 0)));
}
