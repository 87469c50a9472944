"""The library against Algorithm 1, written out step by step from the paper: same choices, same theta, same A, same weights.

Nothing of the library is used on the plain side: its own model, its own loop, a batch of one wherever it can be.
"""

from __future__ import annotations

import numpy as np
import pytest
from inside import state_of
from later import Later
from tiny_models import WORDS, make_reranker, tokenizer

from cascade_memory import CascadeMemory, Ranking
from cascade_memory.assembly.rankers import cross_encoder
from cascade_memory.bandit.neural_bandit import Schedule

torch = Later("torch")
transformers = Later("transformers")

STEPS, H, LAMBDA, ALPHA, ETA = 60, 16, 0.1, 0.3, 1e-3
CASES = [f"{a} the {b} {c}" for a in ("heat", "cool", "clean") for b in ("cup", "egg") for c in ("in fridge", "on desk")]


def _queries() -> list[str]:
    rng = np.random.default_rng(3)
    return [" ".join(rng.choice(WORDS, 4)) for _ in range(STEPS)]


def _reward(query: str, case: str) -> float:
    return float(len(set(query.split()) & set(case.split())) > 1 or len(query) % 3 == 0)


class PlainAlgorithm:
    """Algorithm 1. ``variant`` "paper": the encoder is trained under the head of the moment. "letter": under the head of the
    last epoch, which is loaded again. "authors": their code: probability scale, no lambda theta, head trained with the encoder.
    """

    def __init__(self, folder, variant: str) -> None:
        self.variant = variant
        self.words = tokenizer()
        self.model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
        self.theta = self.model.classifier.weight.detach().numpy()[0].astype(np.float64)
        self.theta_epoch = self.theta
        with torch.no_grad():
            self.model.classifier.bias.zero_()
        self.model.classifier.bias.requires_grad_(False)
        joint = variant == "authors"
        self.model.classifier.weight.requires_grad_(joint)
        trained = [weight for weight in self.model.parameters() if weight.requires_grad]
        self.optimiser = torch.optim.AdamW(trained, lr=ETA, weight_decay=1e-5)
        self.pairs, self.rewards = [], []
        self.precision = LAMBDA * np.eye(len(self.theta))

    def features(self, query: str, case: str):
        seen = []
        hook = self.model.classifier.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        logits = self.model(**self.words(query, case, return_tensors="pt")).logits
        hook.remove()
        return seen[0][0], logits[0, 0]

    def vector(self, query: str, case: str) -> np.ndarray:
        with torch.no_grad():
            return self.features(query, case)[0].numpy().astype(np.float64)

    def choose(self, query: str, candidates: list[str]) -> str:
        rows = np.stack([self.vector(query, case) for case in candidates])
        exploitation = rows @ self.theta
        if self.variant == "authors":
            exploitation = 1 / (1 + np.exp(-exploitation))
        inverse = np.linalg.inv(self.precision)
        width = np.array([np.sqrt(row @ inverse @ row) for row in rows])
        return candidates[int(np.argmax(exploitation + ALPHA * width))]

    def learn(self, query: str, case: str, reward: float) -> None:
        self.pairs.append((query, case))
        self.rewards.append(reward)
        if len(self.pairs) % H == 0:
            self.epoch()
            rows = np.stack([self.vector(*pair) for pair in self.pairs])  # all of them, under the new encoder
            self.precision = LAMBDA * np.eye(len(self.theta)) + rows.T @ rows
            return
        row = self.vector(query, case)
        self.precision = self.precision + np.outer(row, row)
        error = 1 / (1 + np.exp(-self.theta @ row)) - reward
        decay = 0.0 if self.variant == "authors" else LAMBDA * self.theta
        self.theta = self.theta - ETA * (error * row + decay)

    def epoch(self) -> None:
        start = self.theta if self.variant == "paper" else self.theta_epoch
        head = self.model.classifier.weight
        with torch.no_grad():
            head.copy_(torch.tensor(start, dtype=torch.float32)[None])
        self.optimiser.zero_grad()
        for pair, reward in zip(self.pairs[-H:], self.rewards[-H:], strict=True):
            logit = self.features(*pair)[1]
            loss = -reward * torch.nn.functional.logsigmoid(logit) - (1 - reward) * torch.nn.functional.logsigmoid(-logit)
            (loss / H).backward()
        self.optimiser.step()
        self.theta = head.detach().numpy()[0].astype(np.float64) if self.variant == "authors" else start
        self.theta_epoch = self.theta


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["paper", "letter", "authors"])
def test_the_library_is_algorithm_1(variant, tmp_path):
    folder = make_reranker(tmp_path, seed=5)
    plain = PlainAlgorithm(folder, variant)
    head = {"paper": "kept", "letter": "reread", "authors": "joint"}[variant]
    ranker = cross_encoder(
        str(folder),
        schedule=Schedule(every=H, head=head, reencode=None),
        encoder_learning_rate=ETA,
        alpha=ALPHA,
        regularisation=LAMBDA,
        scale="probability" if variant == "authors" else "logit",
        decay=variant != "authors",
    )
    with CascadeMemory(embedder="hashing", ranker=ranker, learn="inline", ranking=Ranking(candidates=8)) as memory:
        memory.add([(case, case) for case in CASES], progress=False)
        explored = 0
        for query in _queries():
            recall = memory.recall(query)
            considered = [candidate.query for candidate in recall.explain().candidates]
            chosen = recall.cases[0].query
            assert chosen == plain.choose(query, considered)
            explored += chosen != max(recall.explain().candidates, key=lambda one: one.value).query
            reward = _reward(query, chosen)
            memory.reward(recall.episode_id, reward)
            plain.learn(query, chosen, reward)
        encoder, policy = state_of(memory).learner.now
        assert encoder.version == STEPS // H
        np.testing.assert_allclose(policy.theta, plain.theta, atol=1e-5)
        inverse = np.linalg.inv(policy.state_dict()["a"])
        np.testing.assert_allclose(inverse, np.linalg.inv(plain.precision), atol=1e-3)
        ours = dict(encoder.apprentice.model.named_parameters())
        for name, weight in plain.model.named_parameters():
            if not name.startswith("classifier"):
                np.testing.assert_allclose(ours[name].detach(), weight.detach(), atol=2e-4)
    assert explored > 0  # the bonus decided something
