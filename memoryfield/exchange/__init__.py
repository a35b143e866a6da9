"""Pages from where memories are today, and back: notes, vaults, memory files, facts, conversations.

parts          what every reader gives: the parts of a source that become pages, and what could not be read
detect         which kind a source is
vault          a folder of Markdown, with folders in it: an Obsidian vault, basic-memory, a memory folder
memory_file    one long MEMORY.md, cut at its headings
records        JSON and JSON lines: facts, mem0, a knowledge graph of entities
conversations  exports of ChatGPT and Claude
accounts       what such an export holds beside: what is remembered, projects and their documents
jsonstream     the elements of a JSON file one by one, past a broken one
imported       which pages earlier imports made
plan           parts -> what would change in a field, shown before anything is written
outward        a field as a vault, as one MEMORY.md, as JSON lines
"""
