"""Text of language models: corpora of documents, their tokens, and contexts packed with them."""
