/** What each rule of the scanner finds and why it matters; the sentences of docs/reference/rules. */
export const scanRules: Record<string, { finds: string; why: string }> = {
  'agent-poisoning': {
    finds: 'The skill writes to files that control the agent.',
    why: "The agent's memory, its standing instructions, its settings and its MCP servers control every later conversation, even after the skill is removed.",
  },
  'bidi-override': {
    finds: 'The text has characters that change the direction of writing.',
    why: 'The displayed text differs from the real one: a comment can look like code, and code like a comment.',
  },
  'binary-program': {
    finds: 'The skill contains a compiled program.',
    why: 'Neither reviewers nor scanners can see what it does.',
  },
  'coin-mining': {
    finds: 'The code mines cryptocurrency.',
    why: "It uses the user's machine to earn money for someone else.",
  },
  'concealment': {
    finds: 'The text tells the agent to hide something from the user.',
    why: 'A skill that helps the user has no reason to hide what it does.',
  },
  'credential-access': {
    finds: 'The code reads stored credentials.',
    why: 'A skill does not need to read SSH keys, cloud credentials, keychains, browser stores or wallets: the programs that use them find them without help.',
  },
  'decode-and-execute': {
    finds: 'An encoded text is decoded and executed.',
    why: 'Encoding code only hides from readers what will run. The decoded text is scanned as well, and its findings are reported at the same position.',
  },
  'destructive-command': {
    finds: 'A command deletes the home folder or a disk.',
    why: 'It cannot be undone.',
  },
  'destructive-instructions': {
    finds: 'The text tells the agent to destroy data or weaken protections without asking the user.',
    why: 'Backups, logs, branches, accounts and certificate checks are needed when something goes wrong. A skill must ask the user before it removes them.',
  },
  'disguised-file': {
    finds: 'The content of a file does not match its file name extension.',
    why: 'A program that is named like a picture is overlooked by reviewers and by many tools.',
  },
  'download-and-execute': {
    finds: 'Code is fetched from the network and executed at once.',
    why: 'The code was not reviewed, and it can change at any time. Most malicious skills found in the wild do not contain their payload: they download it, often from an IP address or a paste site.',
  },
  'dynamic-code': {
    finds: 'Code is assembled at run time.',
    why: 'People and scanners cannot read beforehand what eval and exec will run.',
  },
  'embedded-secret': {
    finds: 'The skill contains a key or a token.',
    why: 'Everyone who gets the skill gets the secret. If it does not belong to the publisher, stolen data may be sent with it.',
  },
  'exfiltration': {
    finds: 'Secrets or files of the user are sent to a host.',
    why: "Keys, tokens and environment variables give access to the user's other data. A token in the header of a request is a login and is not reported.",
  },
  'foreign-index': {
    finds: 'Packages are installed from an index other than the default one.',
    why: 'The owner of the index controls what every package in it does.',
  },
  'hidden-instructions': {
    finds: 'Instructions are placed where readers do not see them.',
    why: 'HTML comments, encoded text and text after many blank lines are not visible to people; the model reads them like every other line.',
  },
  'hidden-text': {
    finds: 'The text contains invisible words.',
    why: 'Tag characters and long runs of zero-width characters can spell sentences that models read and people do not see.',
  },
  'imitated-host': {
    finds: 'A host imitates a well-known service.',
    why: 'slack-edge.example is not Slack. Anyone can register such a name, and its owner gets every token that is sent there.',
  },
  'install-script': {
    finds: "Installing the skill's package runs a command.",
    why: 'npm install runs it without asking, before the skill is used.',
  },
  'instruction-override': {
    finds: 'The text tells the agent to ignore its other instructions.',
    why: "A skill adds knowledge to the agent. A skill that removes the agent's rules wants it to do what the rules forbid.",
  },
  'locked-archive': {
    finds: 'An archive has a password, contains another archive, or is unlocked by a command.',
    why: 'The password keeps only scanners out, because it is written next to the archive.',
  },
  'manual-payload': {
    finds: 'The user is told to download and run something by hand, or to unlock an archive.',
    why: 'A "prerequisite" that is downloaded as an archive with a password, or pasted into a terminal from an unknown page, is how most known malicious skills deliver their payload: scanners cannot read it.',
  },
  'obfuscation': {
    finds: 'The code is obfuscated.',
    why: 'Function names that are assembled from pieces, names like _0x3fa2, and long encoded strings have one purpose: to hide from readers what the code does.',
  },
  'persistence': {
    finds: 'The code sets up a program to start again later.',
    why: "A cron job, a launch agent, a service, a line in the shell's start-up file or an SSH login key stays active after the skill is removed, and runs without asking the user.",
  },
  'protection-disabled': {
    finds: 'A protection of the system is switched off.',
    why: 'The quarantine of downloaded files, Gatekeeper, Defender, SELinux and the firewall protect the machine against unknown programs. Attackers disable them before they run such a program.',
  },
  'raw-address': {
    finds: 'The code connects to an IP address or to a public data drop.',
    why: 'Real services have host names. IP addresses, paste sites and request catchers are used to hide the recipient.',
  },
  'remote-instructions': {
    finds: 'The agent is told to fetch instructions from a host and follow them.',
    why: 'The owner of the host controls what the agent does and can change it at any time, and no scan sees it.',
  },
  'reverse-shell': {
    finds: 'The code gives a remote host a shell on this machine.',
    why: 'The remote host can then run any command on the machine.',
  },
  'secret-solicitation': {
    finds: 'The text asks for secrets to be read, shown or sent.',
    why: 'When an agent reads a key into its context, the key reaches the model, the log, and every later instruction.',
  },
  'typosquat': {
    finds: 'The name of a package is similar to that of a well-known one.',
    why: 'Attackers publish packages whose names differ from popular ones by one letter.',
  },
  'undeclared-files': {
    finds: 'The code reads or writes files that the skill does not declare.',
    why: 'The user agrees only to what the skill declares.',
  },
  'undeclared-network': {
    finds: 'The code connects to a host that the skill does not declare.',
    why: 'The user agrees only to what the skill declares. A skill that uses more is either careless or malicious.',
  },
  'undeclared-program': {
    finds: 'The code starts a program that the skill does not declare.',
    why: 'The user agrees only to what the skill declares.',
  },
  'unpinned-dependency': {
    finds: 'A dependency has no version.',
    why: 'A later install may fetch a different version than the one that was reviewed.',
  },
  'unread-file': {
    finds: 'The scanner could not read a file.',
    why: 'A file that was not read may be malicious. It may be broken by accident, or on purpose, so that scanners fail while the program still runs.',
  },
  'unused-permission': {
    finds: 'The skill declares a permission that its code does not seem to need.',
    why: 'The user must review every permission, and an attacker can use it.',
  },
}
