"""Tokens go to their experts' ranks; every expert multiplies the rows that it gets."""
import torch
import torch.distributed as dist


def operation(x, ids, w, y, count) -> None:
    """x: [tokens, k] and w: [per, n, k] in float16, ids: [tokens, topk]; y: [per, rows, n]."""
    world, per = dist.get_world_size(), w.shape[0]
    experts = torch.arange(world * per, device=x.device)
    chosen = (ids.unsqueeze(-1) == experts).any(1).t()  # [experts, tokens]
    expert, token = chosen.nonzero(as_tuple=True)
    sent = chosen.sum(1).view(world, per)
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    lengths = received.sum(1).tolist()
    rows = x.new_empty(sum(lengths), x.shape[1])
    dist.all_to_all_single(rows, x[token], lengths, sent.sum(1).tolist())
    count.copy_(received.t())
    owner = torch.arange(per, device=x.device).repeat(world).repeat_interleave(received.flatten())
    for e in range(per):
        mine = rows[owner == e]
        y[e, : mine.shape[0]] = mine.float() @ w[e].float().t()


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world = dist.get_world_size()
    for tokens, per, topk, k, n in ((16, 2, 2, 128, 32), (64, 2, 2, 128, 64)):
        x = torch.randint(-8, 9, (tokens, k), device="cuda").half()
        ids = torch.rand(tokens, world * per, device="cuda").topk(topk).indices
        w = torch.randint(-8, 9, (per, n, k), device="cuda").half()
        y = torch.empty(per, world * tokens, n, device="cuda")
        operation(x, ids, w, y, torch.empty(per, world, dtype=torch.int64, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
