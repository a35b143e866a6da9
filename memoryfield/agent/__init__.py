"""What agents get: tools over one or several fields, what to put in front of a model, and rules for writing memory.

tools       the seven tools, as plain functions
answers     how a tool says what it found, and what went wrong, in words that can be acted on
arguments   what a model hands to a tool, checked
merging     hits of several fields in one order
schemas     JSON schemas of the tools for OpenAI, Anthropic and MCP, made from signatures and docstrings
protocol    a short instruction block, and the same as a skill folder
scopes      which memory belongs to the directory that one works in
digest      the pages for a question within a budget, framed as data
ledger      what was put in front of a model already
mcp_server  the tools over MCP (extra ``agents``)
jupyter     the tools as functions that Jupyter AI finds by entry point
"""
