"""A field over HTTP: the specification's routes (FORMAT H), alone or inside a Jupyter server.

policy      who may read and write, which hosts are answered, how much is taken
answers     what each route does, without any web framework
together    questions that wait at the same time, ranked together
glimpses    what a hit shows of its page, kept while the page stays as it is
listing     the catalogue of a field, brought up to date
rendering   a page as HTML that executes nothing
handlers    the routes, as tornado handlers
openapi     the description of the routes
standalone  the server of ``memoryfield serve``
extension   the same routes in a Jupyter server, behind its token
"""
