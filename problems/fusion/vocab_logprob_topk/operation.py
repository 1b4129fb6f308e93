"""Log-probabilities, in bits, of tokens under top-k, least-weight and top-p filters."""
import torch
import torch.distributed as dist


def operation(
    logits: torch.Tensor,
    token: torch.Tensor,
    top_p: torch.Tensor,
    logprob: torch.Tensor,
    lse: torch.Tensor,
    kept: torch.Tensor,
    k: int,
) -> None:
    """logits: [rows, vocab], all others: [rows]."""
    shards = [torch.empty_like(logits) for _ in range(dist.get_world_size())]
    dist.all_gather(shards, logits)
    values, words = torch.sort(torch.cat(shards, dim=1), dim=1, descending=True, stable=True)
    values, words = values[:, :k], words[:, :k]
    most = values[:, :1]
    weight = torch.exp2(values - most) * (values >= most - 12)
    before = weight.cumsum(dim=1) - weight
    keep = (weight > 0) & (8 * before <= top_p[:, None] * weight.sum(dim=1, keepdim=True))
    lse.copy_(most[:, 0] + torch.log2((weight * keep).sum(dim=1)))
    kept.copy_(keep.sum(dim=1))
    hit = keep & (words == token[:, None])
    logprob.copy_(values.masked_fill(~hit, -torch.inf).amax(dim=1) - lse)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for rows in (4, 32):
        logits = torch.randint(-256, 257, (rows, 128), device="cuda").float()
        token, top_p = torch.arange(2 * rows, dtype=torch.int32, device="cuda").view(2, rows) % 9
        logprob, lse = torch.empty(2, rows, device="cuda")
        operation(logits, token, top_p, logprob, lse, torch.empty_like(token), 24)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
