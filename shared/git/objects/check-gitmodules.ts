import { GitFault } from '#shared/git/git-fault.ts';
import { readGitConfig } from '#shared/git/objects/git-config.ts';
import { noWarnings } from '#shared/git/objects/warnings.ts';

/**
 * What git's fsck checks of a `.gitmodules` file: names, addresses, paths and commands that have made clients run foreign code. A
 * file with a syntax error passes, as in git, when what comes before the error is valid.
 * @throws GitFault naming the fault, without the object
 */
export function checkGitmodules(file: Buffer, warn = noWarnings): void {
  const whole = readGitConfig(file, (variable, value) => {
    // For git the name of a variable ends at a NUL byte.
    const [name] = variable.split('\0');
    const [, submodule, key] = /^submodule\.(.*)\.([^.]*)$/s.exec(name ?? '') ?? [];
    if (submodule === undefined) return;
    if (submodule === '' || submodule.split(/[/\\]/).includes('..')) throw fault('gitmodulesName', 'name', submodule);
    const text = value?.split('\0')[0];
    if (text === undefined) return;
    if (key === 'url' && !isAllowedUrl(text)) throw fault('gitmodulesUrl', 'url', text);
    if (key === 'path' && text.startsWith('-')) throw fault('gitmodulesPath', 'path', text);
    if (key === 'update' && text.startsWith('!')) throw fault('gitmodulesUpdate', 'update setting', text);
  });
  if (!whole) warn('gitmodulesParse', 'could not parse gitmodules blob');
}

function fault(id: string, what: string, value: string): GitFault {
  // Other bytes could control the terminal that shows the message.
  const shown = value.slice(0, 200).replace(/[^ -~]/g, '?');
  return new GitFault(`is used as .gitmodules and has a submodule with a ${what} that is not allowed: '${shown}' (${id})`);
}

function isAllowedUrl(url: string): boolean {
  if (url.startsWith('-')) return false;
  if (/^\.\.?[/\\]/.test(url) || url.startsWith('git://')) {
    // A relative URL is appended to the repository's: it must neither have a line break nor replace the host.
    return !hasNewline(url) && !/^(?:\.[/\\])*\.\.[/\\](?:\.{1,2}[/\\])*[:/]/.test(url);
  }
  const address = /^(?:https?|ftps?)::(.*)$/s.exec(url)?.[1] ?? url;
  return address !== url || /^(?:https?|ftps?):\/\//.test(url) ? isAllowedHttpUrl(address) : true;
}

/** Splits the URL like git's `credential_from_url`, which decodes each part by itself. */
function isAllowedHttpUrl(url: string): boolean {
  const [, protocol, authority = '', path = ''] = /^(.+?):\/\/([^/?#]*)(.*)$/s.exec(url) ?? [];
  // The protocol ends at the first '://' and must not be empty.
  if (protocol === undefined || url.startsWith('://')) return false;
  const at = authority.indexOf('@');
  const host = authority.slice(at + 1);
  const user = at < 0 ? '' : authority.slice(0, at);
  const colon = user.indexOf(':');
  const credentials = colon < 0 ? [user] : [user.slice(0, colon), user.slice(colon + 1)];
  return host !== '' && ![protocol, host, ...credentials, path.replace(/^\/+/, '')].some(hasNewline);
}

/** Whether it has a line break, plain or percent-encoded. git does not decode what is before a colon. */
function hasNewline(part: string): boolean {
  const colon = part.indexOf(':');
  return part.includes('\n') || /%0a/i.test(part.slice(Math.max(colon, 0)));
}
