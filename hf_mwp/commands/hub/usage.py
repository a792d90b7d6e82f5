"""The usage section of a model card."""

import json

from transformers import PreTrainedModel

from hf_mwp.runtime.problems import mask_numbers


USAGE = {
    "feature-extraction": """```python
import hf_mwp
from transformers import AutoModel

processor = hf_mwp.MwpProcessor.from_pretrained("{model_id}")
encoder = AutoModel.from_pretrained("{model_id}")
batch = processor("{example}")  # masks the numbers
states = encoder(batch["input_ids"], batch["attention_mask"]).last_hidden_state
```

Without hf_mwp, with the numbers masked by hand:

```python
from transformers import AutoModel, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{model_id}", trust_remote_code=True)
encoder = AutoModel.from_pretrained("{model_id}", trust_remote_code=True)
states = encoder(**tokenizer("{masked}", return_tensors="pt")).last_hidden_state
```""",
    "math-word-problem": """\
The code is in the package: `pip install hf-mwp`. It is not copied here, so that fixes in the package reach this model.

```python
import hf_mwp
from transformers import pipeline

solver = pipeline("math-word-problem", model="{model_id}")
print(solver("{example}"))
```""",
    "runtime": """\
The weights are for hf_mwp's runtime, without PyTorch: `pip install --no-deps hf-mwp`, then `pip install numpy
tokenizers` (and `onnxruntime` for `encoder.onnx`).

```bash
hf download {model_id} --local-dir solver
```

```python
from hf_mwp.runtime import load_solver

solver = load_solver("solver")
print(solver("{example}"))
```""",
}
GENERATION = """```python
import hf_mwp
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{model_id}")
model = AutoModelForSeq2SeqLM.from_pretrained("{model_id}")
inputs = tokenizer({code}, return_tensors="pt")
print(tokenizer.decode(model.generate(**inputs)[0], skip_special_tokens=True))
```"""
USAGE |= dict.fromkeys(("translation", "text2text-generation"), GENERATION)
OTHER = """```python
import hf_mwp
from transformers import pipeline

model = pipeline("{task}", model="{model_id}")
model({code})
```"""
WITHOUT_PIPELINE = """```python
from {package} import {name}

model = {name}.from_pretrained("{model_id}")
```"""
EXAMPLES = {
    "zh": "小明有4个苹果和2个梨，一共有多少个水果？",
    "en": "Tom has 4 apples and 2 pears. How many fruits does he have?",
}


def usage_section(
    task: str | None,
    model_id: str,
    language: str | None,
    indexed_numbers: bool,
    task_example: dict[str, str] | str | None = None,
    output: str | None = None,
    model_class: type = PreTrainedModel,
) -> str:
    """Return the usage section for a pipeline task, or `"runtime"`, with code that runs unchanged. Without a task, the
    model is loaded by its class. Numbers are masked as `[NUM0]`, `[NUM1]`, ... with `indexed_numbers`. `task_example`
    is the example input of a classifier or sequence-to-sequence model; `output` is shown after the code."""
    if language not in EXAMPLES:
        language = "en"
    example = EXAMPLES[language]
    template = WITHOUT_PIPELINE if task is None else USAGE.get(task, OTHER)
    text = template.format(
        task=task,
        model_id=model_id,
        example=example,
        masked=mask_numbers(example, language).text(indexed=indexed_numbers),
        code=json.dumps(task_example or example, ensure_ascii=False),
        package=model_class.__module__.partition(".")[0],
        name=model_class.__name__,
    )
    if output is not None:
        text += f"\n\n```text\n{output}\n```"
    return f"## How to use\n\n{text}"
